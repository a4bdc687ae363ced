package experiment

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/problem"
)

// recordStore keeps an experiment's record in a ConfigMap.
type recordStore struct {
	client     client.Client
	experiment *v1alpha1.RedisExperiment
}

// load returns nil if there is none. A record that cannot be used is a lasting problem.
func (s recordStore) load(ctx context.Context) (*experiment.Record, error) {
	stored, err := s.find(ctx)
	if stored == nil || err != nil {
		return nil, err
	}
	r, err := experiment.DecodeRecord(stored.BinaryData[children.ExperimentRecordKey])
	if err != nil {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonResultsNotStorable, Message: fmt.Sprintf("ConfigMap %s: %s", stored.Name, err), Lasting: true}
	}
	return r, nil
}

// find returns nil if there is no ConfigMap, or one of a deleted experiment that is not garbage-collected yet.
func (s recordStore) find(ctx context.Context) (*corev1.ConfigMap, error) {
	name := children.ExperimentRecordName(s.experiment.Name)
	var stored corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.experiment.Namespace, Name: name}, &stored)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record in ConfigMap %s: %w", name, err)
	case !metav1.IsControlledBy(&stored, s.experiment):
		return nil, nil
	}
	return &stored, nil
}

// save stores a record. It does not overwrite a ConfigMap with another owner.
func (s recordStore) save(ctx context.Context, r *experiment.Record) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	wanted := children.ExperimentRecord(s.experiment, data)
	stored, err := s.find(ctx)
	if err != nil {
		return err
	}
	if stored == nil {
		if err := s.client.Create(ctx, wanted); err != nil {
			return fmt.Errorf("store the record in ConfigMap %s: %w", wanted.Name, err)
		}
		return nil
	}
	wanted.ResourceVersion = stored.ResourceVersion
	if err := s.client.Update(ctx, wanted); err != nil {
		return fmt.Errorf("store the record in ConfigMap %s: %w", wanted.Name, err)
	}
	return nil
}

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

// save stores a record.
func (s recordStore) save(ctx context.Context, r *experiment.Record) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	return s.put(ctx, children.ExperimentRecord(s.experiment, data))
}

// loadHistory returns an empty one if there is none. A history that cannot be used is a lasting problem.
func (s recordStore) loadHistory(ctx context.Context) (*experiment.History, error) {
	stored, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return &experiment.History{Version: experiment.HistoryVersion}, nil
	}
	h, err := experiment.DecodeHistory(stored.BinaryData[children.ExperimentHistoryKey])
	if err != nil {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonResultsNotStorable, Message: fmt.Sprintf("ConfigMap %s: %s", stored.Name, err), Lasting: true}
	}
	return h, nil
}

// saveHistory stores the history of a schedule. runs are those of which there is a RedisExperiment.
func (s recordStore) saveHistory(ctx context.Context, h *experiment.History, runs []string) error {
	pinned := ""
	if to := s.experiment.Spec.CompareTo; to != nil {
		pinned = to.Run
	}
	data, err := h.Encode(pinned, runs)
	if err != nil {
		return err
	}
	return s.put(ctx, children.ExperimentHistory(s.experiment, data))
}

// put stores a ConfigMap. It does not overwrite one with another owner.
func (s recordStore) put(ctx context.Context, wanted *corev1.ConfigMap) error {
	stored, err := s.find(ctx)
	if err != nil {
		return err
	}
	if stored == nil {
		if err := s.client.Create(ctx, wanted); apierrors.IsAlreadyExists(err) {
			return &problem.Problem{Reason: v1alpha1.ReasonObjectNotOwned, Message: fmt.Sprintf("ConfigMap %s belongs to somebody else: delete it, so that the figures can be stored", wanted.Name)}
		} else if err != nil {
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

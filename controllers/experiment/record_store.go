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
	r.Revision = stored.ResourceVersion
	return r, nil
}

// find returns nil if there is no ConfigMap, or one of a deleted experiment that is not garbage-collected yet.
func (s recordStore) find(ctx context.Context) (*corev1.ConfigMap, error) {
	stored, err := s.get(ctx)
	if stored == nil || err != nil || !metav1.IsControlledBy(stored, s.experiment) {
		return nil, err
	}
	return stored, nil
}

// get returns nil if there is no ConfigMap.
func (s recordStore) get(ctx context.Context) (*corev1.ConfigMap, error) {
	name := children.ExperimentRecordName(s.experiment.Name)
	var stored corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.experiment.Namespace, Name: name}, &stored)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record in ConfigMap %s: %w", name, err)
	}
	return &stored, nil
}

func notOwned(name string) error {
	return &problem.Problem{Reason: v1alpha1.ReasonObjectNotOwned, Message: fmt.Sprintf("ConfigMap %s belongs to somebody else: delete it, so that the figures can be stored", name)}
}

// save stores a record in place of what it was read from.
func (s recordStore) save(ctx context.Context, r *experiment.Record) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	r.Revision, err = s.put(ctx, children.ExperimentRecord(s.experiment, data), r.Revision)
	return err
}

// loadHistory returns an empty one if there is none. One that cannot be used is a problem until somebody restores or deletes it, or a later version of the
// operator, which has written it, reads it.
func (s recordStore) loadHistory(ctx context.Context) (*experiment.History, error) {
	stored, err := s.get(ctx)
	switch {
	case err != nil:
		return nil, err
	case stored != nil && !metav1.IsControlledBy(stored, s.experiment) && !s.lacksOwner(stored):
		return nil, notOwned(stored.Name)
	case stored == nil:
		return &experiment.History{Version: experiment.HistoryVersion}, nil
	}
	h, err := experiment.DecodeHistory(stored.BinaryData[children.ExperimentHistoryKey])
	if err != nil {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonResultsNotStorable, Message: fmt.Sprintf("ConfigMap %s: %s; delete it to begin another history", stored.Name, err)}
	}
	h.Revision = stored.ResourceVersion
	return h, nil
}

// lacksOwner reports whether a history is the schedule's, without an owner, as a backup restores it. It gets its owner when it is stored again.
func (s recordStore) lacksOwner(stored *corev1.ConfigMap) bool {
	return metav1.GetControllerOf(stored) == nil && stored.Labels[v1alpha1.LabelExperiment] == s.experiment.Name
}

// saveHistory stores the history of a schedule in place of what it was read from. runs are those of which there is a RedisExperiment.
func (s recordStore) saveHistory(ctx context.Context, h *experiment.History, runs []string) error {
	pinned := ""
	if to := s.experiment.Spec.CompareTo; to != nil {
		pinned = to.Run
	}
	data, err := h.Encode(pinned, runs)
	if err != nil {
		return err
	}
	h.Revision, err = s.put(ctx, children.ExperimentHistory(s.experiment, data), h.Revision)
	return err
}

// put stores a ConfigMap in place of a revision; "" = there was none. It does not overwrite one that was changed meanwhile, or has another owner. It returns the
// revision that is stored then.
func (s recordStore) put(ctx context.Context, wanted *corev1.ConfigMap, revision string) (stored string, err error) {
	wanted.ResourceVersion = revision
	if revision != "" {
		err = s.client.Update(ctx, wanted)
	} else if err = s.client.Create(ctx, wanted); apierrors.IsAlreadyExists(err) {
		if own, readErr := s.find(ctx); readErr == nil && own == nil {
			return revision, notOwned(wanted.Name)
		}
	}
	if err != nil {
		return revision, fmt.Errorf("store the record in ConfigMap %s: %w", wanted.Name, err)
	}
	return wanted.ResourceVersion, nil
}

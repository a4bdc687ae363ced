// Package stored keeps the figures of experiments and the histories of schedules in ConfigMaps.
package stored

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
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/problem"
)

// Record reads the record of an experiment; nil = there is none, or one of a deleted experiment
// that is not garbage-collected yet. A record that cannot be used is a lasting problem.
func Record(
	ctx context.Context, c client.Reader, e *v1alpha1.RedisExperiment,
) (*experiment.Record, error) {
	stored, err := find(ctx, c, e, children.ExperimentRecordName(e.Name))
	if stored == nil || err != nil || !metav1.IsControlledBy(stored, e) {
		return nil, err
	}
	r, err := experiment.DecodeRecord(stored.BinaryData[children.ExperimentRecordKey])
	if err != nil {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonResultsNotStorable,
			Message: fmt.Sprintf("ConfigMap %s: %s", stored.Name, err),
			Lasting: true,
		}
	}
	r.Revision = stored.ResourceVersion
	return r, nil
}

// SaveRecord stores the record of an experiment in place of what it was read from.
func SaveRecord(
	ctx context.Context, c client.Client, e *v1alpha1.RedisExperiment, r *experiment.Record,
) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	r.Revision, err = put(ctx, c, e, children.ExperimentRecord(e, data), r.Revision)
	return err
}

// History reads the history of a schedule: an empty one if there is none. One that cannot be used
// is a problem until somebody restores or deletes it, or a later version of the operator, which has
// written it, reads it.
func History(
	ctx context.Context, c client.Reader, s *v1alpha1.RedisExperimentSchedule,
) (*history.History, error) {
	stored, err := find(ctx, c, s, children.HistoryName(s.Name))
	switch {
	case err != nil:
		return nil, err
	case stored == nil:
		return &history.History{Version: history.Version}, nil
	case !metav1.IsControlledBy(stored, s) && !lacksOwner(stored, s):
		return nil, notOwned(stored.Name)
	}
	h, err := history.Decode(stored.BinaryData[children.HistoryKey])
	if err != nil {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonResultsNotStorable,
			Message: fmt.Sprintf("ConfigMap %s: %s; delete it to begin another history", stored.Name, err),
		}
	}
	h.Revision = stored.ResourceVersion
	return h, nil
}

// lacksOwner reports whether a history is the schedule's, without an owner, as a backup restores
// it. It gets its owner when it is stored again.
func lacksOwner(stored *corev1.ConfigMap, s *v1alpha1.RedisExperimentSchedule) bool {
	return metav1.GetControllerOf(stored) == nil && stored.Labels[v1alpha1.LabelSchedule] == s.Name
}

// SaveHistory stores the history of a schedule in place of what it was read from. runs are those of
// which there is a RedisExperiment.
func SaveHistory(
	ctx context.Context, c client.Client, s *v1alpha1.RedisExperimentSchedule, h *history.History,
	runs []string,
) error {
	pinned := ""
	if to := s.Spec.CompareTo; to != nil {
		pinned = to.Run
	}
	data, err := h.Encode(pinned, runs)
	if err != nil {
		return err
	}
	h.Revision, err = put(ctx, c, s, children.History(s, data), h.Revision)
	return err
}

// find returns nil if there is no ConfigMap of this name.
func find(
	ctx context.Context, c client.Reader, owner client.Object, name string,
) (*corev1.ConfigMap, error) {
	var stored corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, &stored)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record in ConfigMap %s: %w", name, err)
	}
	return &stored, nil
}

func notOwned(name string) error {
	return &problem.Problem{
		Reason: v1alpha1.ReasonObjectNotOwned,
		Message: fmt.Sprintf(
			"ConfigMap %s belongs to somebody else: delete it, so that the figures can be stored", name),
	}
}

// put stores a ConfigMap in place of a revision; "" = there was none. It does not overwrite one
// that was changed meanwhile, or has another owner. It returns the revision that is stored then.
func put(
	ctx context.Context, c client.Client, owner client.Object, wanted *corev1.ConfigMap,
	revision string,
) (stored string, err error) {
	wanted.ResourceVersion = revision
	if revision != "" {
		err = c.Update(ctx, wanted)
	} else if err = c.Create(ctx, wanted); apierrors.IsAlreadyExists(err) {
		other, readErr := find(ctx, c, owner, wanted.Name)
		if readErr == nil && (other == nil || !metav1.IsControlledBy(other, owner)) {
			return revision, notOwned(wanted.Name)
		}
	}
	if problem.Refuses(err) {
		return revision, &problem.Problem{
			Reason:  v1alpha1.ReasonRefused,
			Message: fmt.Sprintf("ConfigMap %s: %s", wanted.Name, problem.Refusal(err)),
		}
	}
	if err != nil {
		return revision, fmt.Errorf("store the record in ConfigMap %s: %w", wanted.Name, err)
	}
	return wanted.ResourceVersion, nil
}

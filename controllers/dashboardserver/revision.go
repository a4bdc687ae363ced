package dashboardserver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/dashboard"
	"github.com/redquake/redquake/internal/record/merged"
)

// state collects what a page shows.
type state struct {
	sum  hash.Hash
	over bool
}

// add adds an object.
func (s *state) add(object *metav1.ObjectMeta, conditions []metav1.Condition) {
	fmt.Fprintf(s.sum, "%s %s\n", object.UID, object.ResourceVersion)
	s.over = s.over && (meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete) ||
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed))
}

// Revision implements dashboard.Source.
func (s *Source) Revision(ctx context.Context, key dashboard.Key) (dashboard.Revision, error) {
	now := &state{sum: fnv.New128a(), over: true}
	var err error
	switch key.Resource {
	case dashboard.LoadTests:
		err = s.addLoadTest(ctx, now, key.Namespace, key.Name)
	case dashboard.Faults:
		err = s.addFault(ctx, now, key.Namespace, key.Name)
	case dashboard.Experiments:
		e := &v1alpha1.RedisExperiment{}
		err = s.get(ctx, key.Namespace, key.Name, e)
		now.add(&e.ObjectMeta, e.Status.Conditions)
	case dashboard.Schedules:
		of := &v1alpha1.RedisExperimentSchedule{}
		err = s.get(ctx, key.Namespace, key.Name, of)
		now.add(&of.ObjectMeta, of.Status.Conditions)
	default:
		err = dashboard.ErrNotFound
	}
	if err != nil {
		return dashboard.Revision{}, err
	}
	return dashboard.Revision{ID: hex.EncodeToString(now.sum.Sum(nil)), Over: now.over}, nil
}

// addLoadTest adds a load test, the faults on it, and how far its record goes.
func (s *Source) addLoadTest(ctx context.Context, now *state, namespace, name string) error {
	test := &v1alpha1.RedisLoadTest{}
	if err := s.get(ctx, namespace, name, test); err != nil {
		return err
	}
	now.add(&test.ObjectMeta, test.Status.Conditions)
	faults, err := s.faultsOn(ctx, test, shared)
	if err != nil {
		return err
	}
	for i := range faults {
		now.add(&faults[i].ObjectMeta, faults[i].Status.Conditions)
	}
	if run := s.Runs.Find(test.UID); run != nil {
		now.over = false // its record is not stored yet
		run.Read(func(series *merged.Series) { fmt.Fprintf(now.sum, "%d\n", series.Complete()) })
	}
	return nil
}

// addFault adds a fault with the load that measures it.
func (s *Source) addFault(ctx context.Context, now *state, namespace, name string) error {
	fault := &v1alpha1.RedisFault{}
	if err := s.get(ctx, namespace, name, fault); err != nil {
		return err
	}
	now.add(&fault.ObjectMeta, fault.Status.Conditions)
	if fault.Status.LoadTest == "" {
		return nil
	}
	err := s.addLoadTest(ctx, now, namespace, fault.Status.LoadTest)
	if errors.Is(err, dashboard.ErrNotFound) {
		return nil
	}
	return err
}

// faultsOn are the faults that were injected on a load test, or wait for it.
func (s *Source) faultsOn(
	ctx context.Context, test *v1alpha1.RedisLoadTest, options ...client.ListOption,
) ([]v1alpha1.RedisFault, error) {
	var list v1alpha1.RedisFaultList
	err := s.Client.List(ctx, &list, append(options, client.InNamespace(test.Namespace))...)
	if err != nil {
		return nil, fmt.Errorf("list the faults of namespace %s: %w", test.Namespace, err)
	}
	var on []v1alpha1.RedisFault
	for i := range list.Items {
		f := &list.Items[i]
		if f.Status.LoadTest == test.Name ||
			f.Spec.LoadTestRef != nil && f.Spec.LoadTestRef.Name == test.Name {
			on = append(on, *f)
		}
	}
	return on, nil
}

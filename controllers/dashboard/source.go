package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/dashboard"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/runs"
)

// Source implements dashboard.Source.
type Source struct {
	Client     client.Reader  // the three kinds from a cache, ConfigMaps from the API server
	Runs       *runs.Registry // of this process
	Namespaced []string       // the namespaces that the manager watches; empty = all
}

// shared makes a list of cached objects without copying them: they are only read.
var shared = client.UnsafeDisableDeepCopyOption(true)

// watches reports whether the objects of a namespace are in the cache.
func (s *Source) watches(namespace string) bool {
	return len(s.Namespaced) == 0 || namespace == "" || slices.Contains(s.Namespaced, namespace)
}

// lists are the objects of each resource.
type lists struct {
	tests       v1alpha1.RedisLoadTestList
	faults      v1alpha1.RedisFaultList
	experiments v1alpha1.RedisExperimentList
}

func (l *lists) of(resource string) client.ObjectList {
	return map[string]client.ObjectList{dashboard.LoadTests: &l.tests, dashboard.Faults: &l.faults, dashboard.Experiments: &l.experiments}[resource]
}

// Namespaces implements dashboard.Source.
func (s *Source) Namespaces(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	for _, resource := range []string{dashboard.LoadTests, dashboard.Faults, dashboard.Experiments} {
		list, err := s.list(ctx, resource, "")
		if err != nil {
			return nil, err
		}
		for i := range list {
			found[list[i].Namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Objects implements dashboard.Source.
func (s *Source) Objects(ctx context.Context, resource, namespace string, limit int) (list []dashboard.Object, more int, err error) {
	if !s.watches(namespace) {
		return nil, 0, nil
	}
	list, err = s.list(ctx, resource, namespace)
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(list, func(a, b dashboard.Object) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	limit = max(0, limit)
	if len(list) > limit {
		return list[:limit], len(list) - limit, nil
	}
	return list, 0, nil
}

func (s *Source) list(ctx context.Context, resource, namespace string) ([]dashboard.Object, error) {
	var l lists
	if err := s.Client.List(ctx, l.of(resource), client.InNamespace(namespace), shared); err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	list := make([]dashboard.Object, 0, len(l.tests.Items)+len(l.faults.Items)+len(l.experiments.Items))
	for i := range l.tests.Items {
		list = append(list, ofLoadTest(&l.tests.Items[i]))
	}
	for i := range l.faults.Items {
		list = append(list, ofFault(&l.faults.Items[i]))
	}
	for i := range l.experiments.Items {
		list = append(list, ofExperiment(&l.experiments.Items[i]))
	}
	return list, nil
}

func entry(resource string, object *metav1.ObjectMeta, conditions []metav1.Condition, verdict v1alpha1.Verdict) dashboard.Object {
	o := dashboard.Object{
		Key: dashboard.Key{Resource: resource, Namespace: object.Namespace, Name: object.Name}, Verdict: report.Verdict(verdict), Created: object.CreationTimestamp.Time,
		Revision: string(object.UID) + "/" + object.ResourceVersion,
	}
	if complete := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete); complete != nil {
		o.Status = complete.Reason
	}
	return o
}

// figures leaves out what is not known.
func figures(namesAndValues ...string) (list []report.Fact) {
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			list = append(list, report.Fact{Name: namesAndValues[i], Value: namesAndValues[i+1]})
		}
	}
	return list
}

func ofLoadTest(t *v1alpha1.RedisLoadTest) dashboard.Object {
	o := entry(dashboard.LoadTests, &t.ObjectMeta, t.Status.Conditions, t.Status.Verdict)
	if d := t.Status.Display; d != nil {
		o.Figures = figures("progress", d.Progress, "requests/s", d.TPS, "p99", d.P99, "errors", d.Errors, "faults", d.Faults, "lost writes", d.LostWrites)
	}
	return o
}

func ofFault(f *v1alpha1.RedisFault) dashboard.Object {
	o := entry(dashboard.Faults, &f.ObjectMeta, f.Status.Conditions, f.Status.Verdict)
	o.Type = string(f.Spec.Action.Type)
	if d := f.Status.Display; d != nil {
		o.Figures = figures("target", d.Target, "dip", d.Dip, "outage", d.Outage, "recovery", d.Recovery, "lost writes", d.LostWrites, "while active", d.WhileActive)
	}
	return o
}

func ofExperiment(e *v1alpha1.RedisExperiment) dashboard.Object {
	o := entry(dashboard.Experiments, &e.ObjectMeta, e.Status.Conditions, e.Status.Verdict)
	if e.Spec.Schedule != "" {
		o.Type = "schedule"
	}
	if d := e.Status.Display; d != nil {
		o.Figures = figures("runs", d.Progress, "cells", d.Cells, "worse", d.Worse, "next", d.Next)
	}
	return o
}

// get reads an object of the cache.
func (s *Source) get(ctx context.Context, namespace, name string, into client.Object) error {
	if !s.watches(namespace) {
		return dashboard.ErrNotFound
	}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return dashboard.ErrNotFound
	}
	return err
}

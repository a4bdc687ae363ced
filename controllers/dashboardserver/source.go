package dashboardserver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/dashboard"
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
	schedules   v1alpha1.RedisExperimentScheduleList
}

func (l *lists) of(resource string) client.ObjectList {
	return map[string]client.ObjectList{
		dashboard.LoadTests:   &l.tests,
		dashboard.Faults:      &l.faults,
		dashboard.Experiments: &l.experiments,
		dashboard.Schedules:   &l.schedules,
	}[resource]
}

// Namespaces implements dashboard.Source.
func (s *Source) Namespaces(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	for _, resource := range []string{
		dashboard.LoadTests, dashboard.Faults, dashboard.Experiments,
		dashboard.Schedules,
	} {
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
func (s *Source) Objects(
	ctx context.Context, resource, namespace string, limit int,
) (list []dashboard.Object, more int, err error) {
	if !s.watches(namespace) {
		return nil, 0, nil
	}
	list, err = s.list(ctx, resource, namespace)
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(list, func(a, b dashboard.Object) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	limit = max(0, limit)
	if len(list) > limit {
		return list[:limit], len(list) - limit, nil
	}
	return list, 0, nil
}

func (s *Source) list(ctx context.Context, resource, namespace string) ([]dashboard.Object, error) {
	var l lists
	err := s.Client.List(ctx, l.of(resource), client.InNamespace(namespace), shared)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	list := make([]dashboard.Object, 0,
		len(l.tests.Items)+len(l.faults.Items)+len(l.experiments.Items)+len(l.schedules.Items))
	for i := range l.tests.Items {
		list = append(list, dashboard.OfLoadTest(&l.tests.Items[i]))
	}
	for i := range l.faults.Items {
		list = append(list, dashboard.OfFault(&l.faults.Items[i]))
	}
	for i := range l.experiments.Items {
		list = append(list, dashboard.OfExperiment(&l.experiments.Items[i]))
	}
	for i := range l.schedules.Items {
		list = append(list, dashboard.OfSchedule(&l.schedules.Items[i]))
	}
	return list, nil
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

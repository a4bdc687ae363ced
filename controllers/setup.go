// Package controllers sets up the reconcilers of the kinds of redquake.dev, for main and for tests.
// Each kind has a package of its own; they share package state, and meet only in internal/runs.
package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/dashboardserver"
	"github.com/redquake/redquake/controllers/redisexperiment"
	"github.com/redquake/redquake/controllers/redisfault"
	"github.com/redquake/redquake/controllers/redisloadtest"
	"github.com/redquake/redquake/controllers/schedule"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/podexec"
)

// managerOptions returns the options that the reconcilers depend on: scheme, cache and client.
// Without namespaces, all are watched. A manager writes into them: each needs its own.
func managerOptions(namespaces []string, election *Election) ctrl.Options {
	var watched map[string]cache.Config
	if len(namespaces) > 0 {
		watched = map[string]cache.Config{}
	}
	for _, name := range namespaces {
		watched[name] = cache.Config{}
	}
	options := ctrl.Options{
		Scheme: NewScheme(),
		Cache: cache.Options{
			DefaultNamespaces: watched,
			DefaultTransform:  cache.TransformStripManagedFields(),
			// Of the cluster's pods and Jobs only those of loads. A fault watches the pods of its target.
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}:  {Label: ofLoads()},
				&batchv1.Job{}: {Label: ofLoads()},
			},
		},
		// Not cached: a cache would list and watch every Secret of the cluster. A cache of Chaos Mesh's
		// kinds would never synchronize if they are absent.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: append([]client.Object{
			&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Service{}, &discoveryv1.EndpointSlice{},
		}, object.Objects()...)}},
	}
	if len(namespaces) > 0 {
		options.Cache.NewInformer = withoutRights
	}
	if election != nil { // see health
		options.Cache.ByObject[&coordinationv1.Lease{}] = cache.ByObject{
			Namespaces: map[string]cache.Config{
				election.Namespace: {
					FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, election.Name),
				},
			},
		}
	}
	return options
}

// ofLoads selects what belongs to a load test.
func ofLoads() labels.Selector {
	present, err := labels.NewRequirement(v1alpha1.LabelLoadTest, selection.Exists, nil)
	utilruntime.Must(err)
	return labels.NewSelector().Add(*present)
}

// NewScheme returns a scheme with every kind that the operator reads or writes.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(object.AddToScheme(scheme))
	return scheme
}

// Settings are the settings of the operator's reconcilers.
type Settings struct {
	Image             string               // of the load pods, unless spec.pods.image is set
	OperatorNamespace string               // "" = unknown
	Namespaces        []string             // those that the manager watches; empty = all
	Faults            []v1alpha1.FaultType // the types that are switched on; nil = all
	Clock             clock.PassiveClock   // nil = the real one
	// shared by both reconcilers; the caller closes them after the manager has stopped
	Runs *runs.Registry
	// how faults reach Redis; the caller closes them after the manager has stopped
	Servers topology.Servers
	// of host names that Redis or a spec names; nil = only those of the cluster are known
	Lookup     confine.Lookup
	Prometheus prometheus.Client // how the queries of stop conditions are evaluated
	Notify     notify.Client     // how schedules notify of their verdicts
	// of the faults, in this process: they outlive a manager; the caller closes them; nil = of this
	// manager only
	Sessions *faultrun.Registry
	// of this process: the caller registers them; nil = nothing is counted
	Metrics *metrics.Metrics
	// each manager has a copy with a Source of its own; nil = there is none
	Dashboard *dashboardserver.Server
	// runs programs in pods; nil = through the API server
	Programs contract.Programs
	Power    contract.PowerHook // nil = there is none
	Pod      string             // the operator's own, in its namespace; "" = unknown

	// TestClient and FaultClient wrap the client of a reconciler; nil = it is not wrapped.
	TestClient, FaultClient func(client.Client) client.Client
}

// setup adds the operator's reconcilers to a manager that was made with managerOptions.
func setup(mgr ctrl.Manager, s Settings, health *health) error {
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	wrapped := func(wrap func(client.Client) client.Client) client.Client {
		if wrap == nil {
			return mgr.GetClient()
		}
		return wrap(mgr.GetClient())
	}
	live, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		HTTPClient: mgr.GetHTTPClient(),
	})
	if err != nil {
		return fmt.Errorf("create the client that reads past the cache: %w", err)
	}
	if s.Programs == nil {
		if s.Programs, err = podexec.New(mgr.GetConfig()); err != nil {
			return err
		}
	}
	of := NewReconcilers(s, wrapped(s.TestClient), wrapped(s.FaultClient), live,
		func(name string) events.EventRecorder { return mgr.GetEventRecorder(name) })
	faults := of.Faults
	for _, one := range []struct {
		what       string
		controller interface {
			SetupWithManager(ctrl.Manager, controller.Options) error
		}
	}{
		{"RedisLoadTest", of.Tests},
		{"RedisFault", faults},
		{"ending RedisFaults", redisfault.Ending{Reconciler: faults}},
		{"RedisExperiment", of.Experiments},
		{"RedisExperimentSchedule", of.Schedules},
		{"notifications", schedule.NewNotifier(of.Schedules)},
	} {
		err := one.controller.SetupWithManager(mgr, health.watching(ControllerOptions()))
		if err != nil {
			return fmt.Errorf("set up the controller of %s: %w", one.what, err)
		}
	}
	if s.Dashboard != nil {
		pages := *s.Dashboard
		pages.Source = &dashboardserver.Source{
			Client:     mgr.GetClient(),
			Runs:       s.Runs,
			Namespaced: s.Namespaces,
		}
		if err := pages.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up the dashboard: %w", err)
		}
	}
	life := manager.RunnableFunc(func(ctx context.Context) error { // while it leads
		defer s.Metrics.Lead(metrics.Leader{
			Objects: ObjectsIn(mgr.GetClient()),
			Stalled: func() time.Duration { age, _ := health.stalled(); return age },
		})()
		faults.Restore(ctx)
		var beside sync.WaitGroup
		beside.Go(func() { health.lead(ctx, mgr.GetClient()) })
		beside.Go(func() { faults.Sweep(ctx) })
		faults.FollowNamespaces(ctx)
		<-ctx.Done()
		beside.Wait()
		faults.Close()
		return nil
	})
	if err := mgr.Add(life); err != nil {
		return fmt.Errorf("set up what begins and ends with the manager: %w", err)
	}
	if err := mgr.Add(lag{s.Metrics}); err != nil {
		return fmt.Errorf("set up the measurement of the manager's lag: %w", err)
	}
	return nil
}

// NewReconcilers returns a reconciler for each kind.
func NewReconcilers(
	s Settings, tests, faults client.Client, apiReader client.WithWatch,
	recorder func(name string) events.EventRecorder,
) Reconcilers {
	if s.Sessions == nil {
		s.Sessions = faultrun.NewRegistry(s.Clock)
	}
	ofFaults := &redisfault.Reconciler{
		Client:            faults,
		APIReader:         apiReader,
		Recorder:          recorder("redisfault"),
		Clock:             s.Clock,
		Runs:              s.Runs,
		Servers:           s.Servers,
		OperatorNamespace: s.OperatorNamespace,
		Term:              s.Sessions.NewTerm(),
		Namespaces:        s.Namespaces,
		Supported:         s.Faults,
		Lookup:            s.Lookup,
		Operator: contract.Operator{
			Programs: s.Programs,
			Image:    s.Image,
			OwnPod:   types.NamespacedName{Namespace: s.OperatorNamespace, Name: s.Pod},
			Power:    s.Power,
		},
		Prometheus: &s.Prometheus,
		Metrics:    s.Metrics,
	}
	return Reconcilers{
		Faults: ofFaults,
		Tests: &redisloadtest.Reconciler{
			Client:    tests,
			APIReader: apiReader,
			Recorder:  recorder("redisloadtest"),
			Clock:     s.Clock,
			Runs:      s.Runs,
			Image:     s.Image,
			Restored:  ofFaults.Restore,
			Metrics:   s.Metrics,
		},
		Experiments: &redisexperiment.Reconciler{
			Client:    tests,
			APIReader: apiReader,
			Recorder:  recorder("redisexperiment"),
			Clock:     s.Clock,
			Restored:  ofFaults.Restore,
		},
		Schedules: &schedule.Reconciler{
			Client:    tests,
			APIReader: apiReader,
			Recorder:  recorder("redisexperimentschedule"),
			Clock:     s.Clock,
			Restored:  ofFaults.Restore,
			Metrics:   s.Metrics,
			Notify:    &s.Notify,
		},
	}
}

// Reconcilers are the operator's reconcilers.
type Reconcilers struct {
	Tests       *redisloadtest.Reconciler
	Faults      *redisfault.Reconciler
	Experiments *redisexperiment.Reconciler
	Schedules   *schedule.Reconciler
}

// ControllerOptions returns the options of a controller: several workers, as a reconcile may wait
// for load pods for seconds, and a short back-off, as most errors are conflicts or pods that are
// starting.
func ControllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: 8,
		SkipNameValidation:      new(true), // a process may run one manager after the other
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*
			time.Millisecond, 10*time.Second),
	}
}

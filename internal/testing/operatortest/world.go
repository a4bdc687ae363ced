package operatortest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/controllers/redisfault"
	"github.com/redquake/redquake/controllers/redisloadtest"
	"github.com/redquake/redquake/controllers/schedule"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/sim"
)

// World is a place in a cluster in memory, whose time is virtual.
type World struct {
	*Place
	Network *memnet.Network
	Servers *sim.Redis // that there are
	Kubelet *sim.Kubelet
	Clock   wallClock // of the operators
	// of the operators; nil = they have none
	Power contract.PowerHook
}

// wallClock is the time of an operator's node, without a monotonic reading. It can be set.
type wallClock struct{ Ahead atomic.Int64 }

func (c *wallClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.Ahead.Load()))
}

func (c *wallClock) Since(t time.Time) time.Duration {
	return c.Now().Sub(t)
}

// InWorld runs a test in its own world, with exact times: only waiting takes time.
func InWorld(t *testing.T, test func(*World)) {
	t.Helper()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	synctest.Test(t, func(t *testing.T) {
		w := &World{Network: memnet.New(), Servers: sim.NewRedis()}
		w.Place = &Place{
			T:         t,
			Namespace: "test",
			Client:    sim.NewAPI(controllers.NewScheme()),
			Subnet:    "10.0.0.",
			LookEvery: 10 * time.Second,
		}
		w.Operate = w.startReconcilers
		w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})
		next := 9
		w.Kubelet = &sim.Kubelet{
			Place: sim.Place{T: t, Client: w.Client, Namespace: w.Namespace}, LookEvery: w.LookEvery,
			Listen: w.Network.Listen,
			Address: func() string {
				next++
				return w.Subnet + strconv.Itoa(next)
			},
			Load: func(plan *plan.Plan, pod int) (agent.Runner, error) {
				return sim.NewLoad(plan, pod, w.Servers)
			},
		}
		test(w)
	})
}

// StartRedis starts a StatefulSet of one pod with a server in memory.
func (w *World) StartRedis(password string) *RedisSet {
	s := &RedisSet{
		Place:   w.Place,
		ip:      w.Subnet + "2",
		DownFor: 400 * time.Millisecond,
	}
	server := w.Servers.Add(s.Address(), password)
	s.launch = func() redisProcess {
		server.Start()
		return server
	}
	s.Setting = func(name, _ string) string { return server.Setting(name) }
	s.start()
	return s
}

// startReconcilers starts an operator.
func (w *World) startReconcilers(s Spy) *Operator {
	w.T.Helper()
	o := NewOperator(w.Clock.Now)
	o.Sessions.Dial = w.Network.Dial
	ofFaults := faultrun.NewRegistry(&w.Clock)
	o.Lead = func() { w.lead(o, s, ofFaults) }
	o.Lead()
	o.End = func() {
		o.LoseLeadership()
		ofFaults.Close()
	}
	return o
}

// lead starts the reconcilers, with the same watches and options as in Setup.
func (w *World) lead(o *Operator, s Spy, ofFaults *faultrun.Registry) {
	through := interceptor.NewClient(w.Client, o.Intercept(s))
	of := controllers.NewReconcilers(controllers.Settings{
		Image:             "redquake:test",
		OperatorNamespace: w.Home(),
		Clock:             &w.Clock,
		Runs:              o.Sessions,
		Servers:           w.Servers,
		Sessions:          ofFaults,
		Prometheus:        prometheus.Client{Hosts: egress.Hosts{"10.0.0.5"}, Dial: w.Network.Dial},
		Notify:            notify.Client{Hosts: egress.Hosts{"10.0.0.7"}, Dial: w.Network.Dial},
		Metrics:           o.Metrics,
		Power:             w.Power,
	},
		through, through, interceptor.NewClient(w.Client, o.InterceptLive()),
		func(string) events.EventRecorder { return Recorder{w.Client} })
	itself := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	tests, faults := of.Tests, of.Faults
	stop := sim.Run(w.T, w.Client, w.Namespace, append(OfSchedules(of),
		sim.Controller{
			Reconciler: tests,
			Limiter:    controllers.ControllerOptions().RateLimiter,
			Workers:    controllers.ControllerOptions().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisLoadTestList{}, Map: itself},
				{Kind: &batchv1.JobList{}, Map: OwnedBy("RedisLoadTest")},
				{Kind: &corev1.PodList{}, Map: redisloadtest.RequestsForPod},
				{Kind: &v1alpha1.RedisFaultList{}, Map: redisloadtest.RequestsForFault},
			},
		},
		sim.Controller{
			Reconciler: faults,
			Limiter:    controllers.ControllerOptions().RateLimiter,
			Workers:    controllers.ControllerOptions().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisFaultList{}, Map: itself},
				{Kind: &v1alpha1.RedisFaultList{}, Map: faults.RequestsForFault},
				{Kind: &v1alpha1.RedisLoadTestList{}, Map: faults.RequestsForLoadTest},
				{Kind: &corev1.NamespaceList{}, Map: faults.RequestsForNamespace},
			},
			Events: ofFaults.Changed(),
		},
		sim.Controller{
			Reconciler: redisfault.Ending{Reconciler: faults},
			Limiter:    controllers.ControllerOptions().RateLimiter,
			Workers:    controllers.ControllerOptions().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisFaultList{}, Map: itself},
				{Kind: &corev1.NamespaceList{}, Map: faults.RequestsForNamespace},
			},
		},
		sim.Controller{
			Reconciler: of.Experiments,
			Limiter:    controllers.ControllerOptions().RateLimiter,
			Workers:    controllers.ControllerOptions().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisExperimentList{}, Map: itself},
				{Kind: &v1alpha1.RedisLoadTestList{}, Map: OwnedBy("RedisExperiment")},
				{Kind: &v1alpha1.RedisFaultList{}, Map: OwnedBy("RedisExperiment")},
			},
		},
	)...)
	unlead := o.Metrics.Lead(metrics.Leader{Objects: controllers.ObjectsIn(through)})
	o.LoseLeadership = sync.OnceFunc(func() {
		unlead()
		stop()
		faults.Close()
		o.Sessions.Close()
	})
}

// OwnedBy maps an object to its controller.
func OwnedBy(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []reconcile.Request{
			{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}},
		}
	}
}

// Recorder writes each event to an API server.
type Recorder struct{ Client client.Client }

// Eventf implements events.EventRecorder.
func (r Recorder) Eventf(
	regarding, related runtime.Object, kind, reason, action, note string, args ...any,
) {
	of, err := reference.GetReference(r.Client.Scheme(), regarding)
	if err != nil {
		return
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    cmp.Or(of.Namespace, metav1.NamespaceDefault),
			GenerateName: of.Name + "-",
		},
		EventTime: metav1.NowMicro(),
		Type:      kind,
		Reason:    reason,
		Action:    action,
		Note:      fmt.Sprintf(note, args...),
		Regarding: *of,
	}
	if related != nil {
		event.Related, _ = reference.GetReference(r.Client.Scheme(), related)
	}
	_ = r.Client.Create(context.Background(), event)
}

// Serve answers HTTP requests at an address of the world until the test ends.
func (w *World) Serve(address string, answer http.HandlerFunc) *http.Server {
	w.T.Helper()
	listener, err := w.Network.Listen(address)
	if err != nil {
		w.T.Fatal(err)
	}
	server := &http.Server{Handler: answer}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	w.T.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return server
}

// StartEngine makes the load pods run the real load, against a Redis in memory. The plan names the
// topology, as detecting it needs TCP.
func (w *World) StartEngine() *memredis.Server {
	w.Kubelet.Load = func(p *plan.Plan, pod int) (agent.Runner, error) {
		p.Target.Topology = plan.TopologyStandalone
		// as cmd/redquake does
		return engine.New(p, pod, engine.WithDialer(w.Network.Dial), engine.WithPatience(math.MaxInt64))
	}
	w.Kubelet.Start()
	return memredis.Start(w.T, w.Network, w.Subnet+"2:6379", memredis.Options{})
}

// OfSchedules are the controllers of schedules and of their notifications, with the watches of
// their SetupWithManager.
func OfSchedules(of controllers.Reconcilers) []sim.Controller {
	itself := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	return []sim.Controller{
		{
			Reconciler: of.Schedules,
			Limiter:    controllers.ControllerOptions().RateLimiter,
			Workers:    controllers.ControllerOptions().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisExperimentScheduleList{}, Map: itself},
				{
					Kind: &v1alpha1.RedisExperimentList{},
					Map: func(ctx context.Context, o client.Object) []reconcile.Request {
						if Reason(o.(*v1alpha1.RedisExperiment).Status.Conditions) == v1alpha1.ReasonRunning {
							return nil // as the predicate of the controller does
						}
						return OwnedBy("RedisExperimentSchedule")(ctx, o)
					},
				},
			},
		},
		{
			Reconciler: schedule.NewNotifier(of.Schedules),
			Limiter:    controllers.ControllerOptions().RateLimiter,
			Workers:    controllers.ControllerOptions().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{
					Kind: &v1alpha1.RedisExperimentScheduleList{},
					Map: func(ctx context.Context, o client.Object) []reconcile.Request {
						if !schedule.Notifies(o.(*v1alpha1.RedisExperimentSchedule)) {
							return nil
						}
						return itself(ctx, o)
					},
				},
			},
		},
	}
}

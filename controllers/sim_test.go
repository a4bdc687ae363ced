package controllers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
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
	"github.com/redquake/redquake/controllers/redisfault"
	"github.com/redquake/redquake/controllers/redisloadtest"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/sim"
)

// world is a place in a cluster in memory, whose time is virtual.
type world struct {
	*place
	network *memnet.Network
	redis   *sim.Redis
	kubelet *sim.Kubelet
	clock   wallClock // of the operators
}

// wallClock is the time of an operator's node, without a monotonic reading. It can be set.
type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) Now() time.Time { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }

func (c *wallClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// inWorld runs a test in its own world, with exact times: only waiting takes time.
func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	synctest.Test(t, func(t *testing.T) {
		w := &world{network: memnet.New(), redis: sim.NewRedis()}
		w.place = &place{
			t:         t,
			namespace: "test",
			client:    sim.NewAPI(NewScheme()),
			subnet:    "10.0.0.",
			lookEvery: 10 * time.Second,
		}
		w.operate = w.startReconcilers
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
		next := 9
		w.kubelet = &sim.Kubelet{
			Place: sim.Place{T: t, Client: w.client, Namespace: w.namespace}, LookEvery: w.lookEvery,
			Listen: w.network.Listen,
			Address: func() string {
				next++
				return w.subnet + strconv.Itoa(next)
			},
			Load: func(plan *plan.Plan, pod int) (agent.Runner, error) { return sim.NewLoad(plan, pod, w.redis) },
		}
		test(w)
	})
}

// startRedis starts a StatefulSet of one pod with a server in memory.
func (w *world) startRedis(password string) *redisSet {
	s := &redisSet{place: w.place, ip: w.subnet + "2", downFor: 400 * time.Millisecond}
	server := w.redis.Add(s.address(), password)
	s.launch = func() redisProcess {
		server.Start()
		return server
	}
	s.setting = func(name, _ string) string { return server.Setting(name) }
	s.start()
	return s
}

// startReconcilers starts an operator.
func (w *world) startReconcilers(s spy) *operator {
	w.t.Helper()
	o := newOperator(w.clock.Now)
	o.sessions.Dial = w.network.Dial
	ofFaults := faultrun.NewRegistry(&w.clock)
	o.lead = func() { w.lead(o, s, ofFaults) }
	o.lead()
	o.end = func() {
		o.loseLeadership()
		ofFaults.Close()
	}
	return o
}

// lead starts the reconcilers, with the same watches and options as in Setup.
func (w *world) lead(o *operator, s spy, ofFaults *faultrun.Registry) {
	through := interceptor.NewClient(w.client, o.Intercept(s))
	of := reconcilers(Settings{
		Image:             "redquake:test",
		OperatorNamespace: w.home(),
		Clock:             &w.clock,
		Runs:              o.sessions,
		Servers:           w.redis,
		Sessions:          ofFaults,
		Prometheus:        prometheus.Client{Hosts: egress.Hosts{"10.0.0.5"}, Dial: w.network.Dial},
		Notify:            notify.Client{Hosts: egress.Hosts{"10.0.0.7"}, Dial: w.network.Dial},
		Metrics:           o.metrics,
	},
		through, through, interceptor.NewClient(w.client, o.InterceptLive()),
		func(string) events.EventRecorder { return recorder{w.client} })
	itself := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	tests, faults := of.tests, of.faults
	stop := sim.Run(w.t, w.client, w.namespace, append(ofSchedules(of),
		sim.Controller{
			Reconciler: tests,
			Limiter:    options().RateLimiter,
			Workers:    options().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisLoadTestList{}, Map: itself},
				{Kind: &batchv1.JobList{}, Map: ownedBy("RedisLoadTest")},
				{Kind: &corev1.PodList{}, Map: redisloadtest.RequestsForPod},
				{Kind: &v1alpha1.RedisFaultList{}, Map: redisloadtest.RequestsForFault},
			},
		},
		sim.Controller{
			Reconciler: faults,
			Limiter:    options().RateLimiter,
			Workers:    options().MaxConcurrentReconciles,
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
			Limiter:    options().RateLimiter,
			Workers:    options().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisFaultList{}, Map: itself},
				{Kind: &corev1.NamespaceList{}, Map: faults.RequestsForNamespace},
			},
		},
		sim.Controller{
			Reconciler: of.experiments,
			Limiter:    options().RateLimiter,
			Workers:    options().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisExperimentList{}, Map: itself},
				{Kind: &v1alpha1.RedisLoadTestList{}, Map: ownedBy("RedisExperiment")},
				{Kind: &v1alpha1.RedisFaultList{}, Map: ownedBy("RedisExperiment")},
			},
		},
	)...)
	unlead := o.metrics.Lead(metrics.Leader{Objects: objectsIn(through)})
	o.loseLeadership = sync.OnceFunc(func() {
		unlead()
		stop()
		faults.Close()
		o.sessions.Close()
	})
}

// ownedBy maps an object to its controller.
func ownedBy(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}}}
	}
}

// recorder writes each event to an API server.
type recorder struct{ client client.Client }

func (r recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	of, err := reference.GetReference(r.client.Scheme(), regarding)
	if err != nil {
		return
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(of.Namespace, metav1.NamespaceDefault), GenerateName: of.Name + "-"},
		EventTime:  metav1.NowMicro(),
		Type:       kind,
		Reason:     reason,
		Action:     action,
		Note:       fmt.Sprintf(note, args...),
		Regarding:  *of,
	}
	if related != nil {
		event.Related, _ = reference.GetReference(r.client.Scheme(), related)
	}
	_ = r.client.Create(context.Background(), event)
}

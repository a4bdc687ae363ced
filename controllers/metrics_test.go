package controllers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// exported are the metrics of a process by name.
type exported map[string][]*dto.Metric

// exported returns what the process exports at this instant: when all that happens at it is done. A change is counted
// after its write, which a test can see before.
func (o *operator) exported(t *testing.T) exported {
	t.Helper()
	synctest.Wait()
	return o.gathered(t)
}

// gathered are the metrics as they are now.
func (o *operator) gathered(t *testing.T) exported {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o.metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := exported{}
	for _, f := range families {
		all[f.GetName()] = f.Metric
	}
	return all
}

// sum adds the values of a metric over the series that have all of the labels, such as type=Config.
func (e exported) sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, m := range e[name] {
		has := map[string]bool{}
		for _, l := range m.Label {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && has[l]
		}
		if all {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// series counts the series of each metric.
func (e exported) series() string {
	counts := map[string]int{}
	for name, all := range e {
		counts[name] = len(all)
	}
	return fmt.Sprint(counts)
}

// A pod kill under load: every request is counted once, and the figures of the fault are those of its status.
func TestMetricsOfAPodKill(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		o := startOperator(w.place, spy{})
		idle := o.exported(w.t)
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				40 * time.Second)
		}))
		w.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(4 * time.Second)}
		}))
		w.faultHasReason("kill", time.Minute, v1alpha1.ReasonObserving)
		during := o.exported(w.t)
		if n := during.sum("redquake_fault_info", "fault=kill", "type=PodKill", "loadtest=run", "state=Recovering"); n != 1 ||
			during.sum("redquake_manager_sessions") != 1 {
			w.t.Errorf("%v in recovery, %v sessions", n, during.sum("redquake_manager_sessions"))
		}
		f := w.faultEnds("kill", time.Minute)
		test := w.testEnds("run", time.Minute)
		e := o.exported(w.t)
		for name, c := range map[string]struct{ got, want float64 }{
			"requests": {e.sum("redquake_loadtest_requests_total"), float64(test.Status.Summary.Requests)},
			"successes": {
				e.sum("redquake_loadtest_requests_total", "outcome=ok"),
				float64(test.Status.Summary.Requests - test.Status.Summary.Errors),
			},
			"errors": {
				e.sum("redquake_loadtest_errors_total") + e.sum("redquake_loadtest_requests_total", "outcome=dropped"),
				float64(test.Status.Summary.Errors),
			},
			"latencies": {
				e.sum("redquake_loadtest_latency_seconds"),
				float64(test.Status.Summary.Requests - test.Status.Summary.Errors),
			},
			"outage": {
				1e6 * e.sum("redquake_fault_outage_seconds", "fault=kill", "type=PodKill"),
				float64(f.Status.Impact.Outage.Value),
			},
			"recovery":   {1e6 * e.sum("redquake_fault_recovery_seconds"), float64(f.Status.Impact.RecoveryTime.Value)},
			"dip":        {e.sum("redquake_fault_dip_ratio"), number(w.t, string(f.Status.Impact.Dip.Value))},
			"injected":   {e.sum("redquake_fault_injected_timestamp_seconds"), float64(f.Status.InjectedAt.UnixMicro()) / 1e6},
			"injections": {e.sum("redquake_fault_injections_total"), 1},
			"reverts":    {e.sum("redquake_fault_reverts_total", "type=PodKill"), 1},
			"failures":   {e.sum("redquake_fault_revert_failures_total") + e.sum("redquake_fault_overstays_total"), 0},
			"effects":    {e.sum("redquake_fault_effects_total", "type=PodKill", "effect=Confirmed"), 1},
			"ended":      {e.sum("redquake_fault_ended_total", "type=PodKill", "verdict="+string(f.Status.Verdict)), 1},
			"tests":      {e.sum("redquake_loadtest_ended_total", "verdict="+string(test.Status.Verdict)), 1},
			"sessions":   {e.sum("redquake_manager_sessions"), 0},
		} {
			if c.got != c.want && !(c.want > 0 && c.got/c.want > 1-1e-9 && c.got/c.want < 1+1e-9) {
				w.t.Errorf("%s: %v, want %v", name, c.got, c.want)
			}
		}
		w.mustChange(w.client.Delete(w.t.Context(), f))
		w.mustChange(w.client.Delete(w.t.Context(), test))
		time.Sleep(time.Minute)
		if left := o.exported(w.t).series(); left != idle.series() {
			w.t.Errorf("after the deletion %s, before %s", left, idle.series())
		}
	})
}

// The operator ends just before each of its writes for a fault, or loses the leadership there: over all processes each
// change counts once, and what describes the objects is there after the restart, from the leader only.
func TestMetricsSurviveACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 10; n++ {
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				var all processes
				all.in(w.place)
				var writes atomic.Int32
				starts := keepRunning(w.place, func(self func() *operator) spy {
					return crashAtOf(n, false, &writes, ofFault,
						self)
				})
				w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Rate, test.Spec.Load.Duration = new(int32(50)), length(35*time.Second)
				}))
				w.create(hzFault(func(f *v1alpha1.RedisFault) {
					f.Spec.Duration, f.Spec.Trigger.After = length(5*time.Second), length(3*time.Second)
				}))
				f := w.faultEnds("break", 2*time.Minute)
				for _, name := range []string{
					"redquake_fault_injections_total", "redquake_fault_reverts_total",
					"redquake_fault_effects_total", "redquake_fault_ended_total",
				} {
					if got := all.sum(t, name, "type=Config"); got != 1 {
						t.Errorf("%s is %v after %d processes, want 1", name, got, starts.Load())
					}
				}
				if got := all.sum(t, "redquake_fault_revert_failures_total"); got != 0 {
					t.Errorf("%v failed reverts", got)
				}
				if got := all.sum(t, "redquake_fault_info", "state=Complete"); got != 1 {
					t.Errorf("%v processes export the fault: %s", got, where(f.Status.Conditions))
				}
				if got := all.sum(t, "redquake_manager_leading"); got != 1 {
					t.Errorf("%v managers lead", got)
				}
			})
		})
	}
}

// ofFault selects the writes of a fault.
func ofFault(w write) bool {
	_, is := w.Object.(*v1alpha1.RedisFault)
	return is
}

// processes are the operators of a place, also those that have ended: Prometheus has scraped them.
type processes struct {
	mu  sync.Mutex
	all []*operator
}

func (p *processes) in(place *place) {
	operate := place.operate
	place.operate = func(s spy) *operator {
		o := operate(s)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all = append(p.all, o)
		return o
	}
}

func (p *processes) sum(t *testing.T, name string, labels ...string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := 0.0
	for _, o := range p.all {
		sum += o.exported(t).sum(name, labels...)
	}
	return sum
}

// Objects that were deleted while no operator ran have no series; nor has one that has lost the leadership.
func TestMetricsOfWhatIsGone(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		first := startOperator(w.place, spy{})
		idle := first.exported(w.t).series()
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(5 *
				time.Minute)
		}))
		test := w.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		time.Sleep(5 * time.Second)
		if n := first.exported(w.t).sum("redquake_loadtest_requests_total", "outcome=ok"); n < 500 {
			w.t.Errorf("%v requests after 5 s at 200/s", n)
		}
		first.loseLeadership()
		first.mustExport(w.t, idle)
		first.lead()
		if n := first.exported(w.t).sum("redquake_loadtest_info", "state=Running"); n != 1 {
			w.t.Errorf("%v load tests after another election", n)
		}
		time.Sleep(10 * time.Second)
		if n := first.exported(w.t).sum("redquake_loadtest_requests_total", "outcome=ok"); n < 1000 {
			w.t.Errorf("%v requests within 10 s after another election", n)
		}
		first.stop()
		w.mustChange(w.client.Delete(context.Background(), test))
		second := startOperator(w.place, spy{})
		time.Sleep(time.Minute)
		second.mustExport(w.t, idle)
	})
}

// mustExport checks which series there are. Without leadership those of the manager are the same.
func (o *operator) mustExport(t *testing.T, series string) {
	t.Helper()
	if got := o.exported(t).series(); got != series {
		t.Errorf("exported %s, want %s", got, series)
	}
}

// After 1,000 objects have come and gone, as controllers handle them, there are as many series as before.
func TestMetricsOfAThousandObjects(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		o := startOperator(w.place, spy{})
		idle := o.exported(w.t).series()
		const rounds, each = 10, 34 // of three kinds
		for round := range rounds {
			for i := range each {
				name := fmt.Sprintf("object-%d-%d", round, i)
				w.create(newLoadTest(name, "10.0.0.2:6379", func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true }))
				w.create(newFault(name, name, v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true }))
				w.create(newExperiment(name, "10.0.0.2:6379", func(e *v1alpha1.RedisExperiment) { e.Spec.Suspend = true }))
			}
			time.Sleep(time.Second)
			e := o.exported(w.t)
			if n := e.sum("redquake_fault_info", "state=Suspended") + e.sum("redquake_loadtest_info", "state=Suspended") +
				e.sum("redquake_experiment_info", "state=Suspended"); n != 3*each {
				w.t.Errorf("%v suspended objects, want %d", n, 3*each)
			}
			for i := range each {
				meta := metav1.ObjectMeta{Name: fmt.Sprintf("object-%d-%d", round, i), Namespace: w.namespace}
				w.mustChange(w.client.Delete(w.t.Context(), &v1alpha1.RedisFault{ObjectMeta: meta}))
				w.mustChange(w.client.Delete(w.t.Context(), &v1alpha1.RedisExperiment{ObjectMeta: meta}))
				w.mustChange(w.client.Delete(w.t.Context(), &v1alpha1.RedisLoadTest{ObjectMeta: meta}))
			}
			time.Sleep(time.Second)
		}
		o.mustExport(w.t, idle)
	})
}

package virtual

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// seriesOf counts the series of each metric.
func seriesOf(e operatortest.Exported) string {
	counts := map[string]int{}
	for name, all := range e {
		counts[name] = len(all)
	}
	return fmt.Sprint(counts)
}

// A pod kill under load: every request is counted once, and the figures of the fault are those of its status.
func TestMetricsOfAPodKill(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		o := w.Operator
		idle := o.Exported(w.T)
		w.CreateLoad(operatortest.Lasting(40 * time.Second))
		w.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(4 * time.Second)}
		}))
		w.FaultHasReason("kill", time.Minute, v1alpha1.ReasonObserving)
		during := o.Exported(w.T)
		if n := during.Sum("redquake_fault_info", "fault=kill", "type=PodKill", "loadtest=run", "state=Recovering"); n != 1 ||
			during.Sum("redquake_manager_sessions") != 1 {
			w.T.Errorf("%v in recovery, %v sessions", n, during.Sum("redquake_manager_sessions"))
		}
		f := w.FaultEnds("kill", time.Minute)
		test := w.TestEnds("run", time.Minute)
		e := o.Exported(w.T)
		for name, c := range map[string]struct{ got, want float64 }{
			"requests": {e.Sum("redquake_loadtest_requests_total"), float64(test.Status.Summary.Requests)},
			"successes": {
				e.Sum("redquake_loadtest_requests_total", "outcome=ok"),
				float64(test.Status.Summary.Requests - test.Status.Summary.Errors),
			},
			"errors": {
				e.Sum("redquake_loadtest_errors_total") + e.Sum("redquake_loadtest_requests_total", "outcome=dropped"),
				float64(test.Status.Summary.Errors),
			},
			"latencies": {
				e.Sum("redquake_loadtest_latency_seconds"),
				float64(test.Status.Summary.Requests - test.Status.Summary.Errors),
			},
			"outage": {
				e.Sum("redquake_fault_outage_seconds", "fault=kill", "type=PodKill"),
				f.Status.Impact.Outage.Value.Seconds(),
			},
			"recovery":   {e.Sum("redquake_fault_recovery_seconds"), f.Status.Impact.RecoveryTime.Value.Seconds()},
			"dip":        {e.Sum("redquake_fault_dip_ratio"), operatortest.Number(w.T, string(f.Status.Impact.Dip.Value))},
			"injected":   {e.Sum("redquake_fault_injected_timestamp_seconds"), float64(f.Status.InjectedAt.UnixMicro()) / 1e6},
			"injections": {e.Sum("redquake_fault_injections_total"), 1},
			"reverts":    {e.Sum("redquake_fault_reverts_total", "type=PodKill"), 1},
			"failures":   {e.Sum("redquake_fault_revert_failures_total") + e.Sum("redquake_fault_overstays_total"), 0},
			"effects":    {e.Sum("redquake_fault_effects_total", "type=PodKill", "effect=Confirmed"), 1},
			"ended":      {e.Sum("redquake_fault_ended_total", "type=PodKill", "verdict="+string(f.Status.Verdict)), 1},
			"tests":      {e.Sum("redquake_loadtest_ended_total", "verdict="+string(test.Status.Verdict)), 1},
			"sessions":   {e.Sum("redquake_manager_sessions"), 0},
		} {
			if c.got != c.want && !(c.want > 0 && c.got/c.want > 1-1e-9 && c.got/c.want < 1+1e-9) {
				w.T.Errorf("%s: %v, want %v", name, c.got, c.want)
			}
		}
		w.MustChange(w.Client.Delete(w.T.Context(), f))
		w.MustChange(w.Client.Delete(w.T.Context(), test))
		time.Sleep(time.Minute)
		if left := seriesOf(o.Exported(w.T)); left != seriesOf(idle) {
			w.T.Errorf("after the deletion %s, before %s", left, seriesOf(idle))
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
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				w.Kubelet.Start()
				var all processes
				all.in(w.Place)
				var writes atomic.Int32
				starts := operatortest.KeepRunning(w.Place, func(self func() *operatortest.Operator) operatortest.Spy {
					return operatortest.CrashAtOf(n, false, &writes, ofFault,
						self)
				})
				w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Rate, test.Spec.Load.Duration = new(int32(50)), operatortest.Length(35*time.Second)
				}))
				w.Create(operatortest.HzFault(func(f *v1alpha1.RedisFault) {
					f.Spec.Duration, f.Spec.Trigger.After = operatortest.Length(5*time.Second), operatortest.Length(3*time.Second)
				}))
				f := w.FaultEnds("break", 2*time.Minute)
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
					t.Errorf("%v processes export the fault: %s", got, operatortest.Where(f.Status.Conditions))
				}
				if got := all.sum(t, "redquake_manager_leading"); got != 1 {
					t.Errorf("%v managers lead", got)
				}
			})
		})
	}
}

// ofFault selects the writes of a fault.
func ofFault(w operatortest.Write) bool {
	_, is := w.Object.(*v1alpha1.RedisFault)
	return is
}

// processes are the operators of a place, also those that have ended: Prometheus has scraped them.
type processes struct {
	mu  sync.Mutex
	all []*operatortest.Operator
}

func (p *processes) in(place *operatortest.Place) {
	operate := place.Operate
	place.Operate = func(s operatortest.Spy) *operatortest.Operator {
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
		sum += o.Exported(t).Sum(name, labels...)
	}
	return sum
}

// Objects that were deleted while no operator ran have no series; nor has one that has lost the leadership.
func TestMetricsOfWhatIsGone(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		first := w.Operator
		idle := seriesOf(first.Exported(w.T))
		w.CreateLoad(operatortest.Lasting(5 * time.Minute))
		test := w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		time.Sleep(5 * time.Second)
		if n := first.Exported(w.T).Sum("redquake_loadtest_requests_total", "outcome=ok"); n < 500 {
			w.T.Errorf("%v requests after 5 s at 200/s", n)
		}
		first.LoseLeadership()
		mustExport(first, w.T, idle)
		first.Lead()
		if n := first.Exported(w.T).Sum("redquake_loadtest_info", "state=Running"); n != 1 {
			w.T.Errorf("%v load tests after another election", n)
		}
		time.Sleep(10 * time.Second)
		if n := first.Exported(w.T).Sum("redquake_loadtest_requests_total", "outcome=ok"); n < 1000 {
			w.T.Errorf("%v requests within 10 s after another election", n)
		}
		first.Stop()
		w.MustChange(w.Client.Delete(context.Background(), test))
		second := operatortest.StartOperator(w.Place, operatortest.Spy{})
		time.Sleep(time.Minute)
		mustExport(second, w.T, idle)
	})
}

// mustExport checks which series there are. Without leadership those of the manager are the same.
func mustExport(o *operatortest.Operator, t *testing.T, series string) {
	t.Helper()
	if got := seriesOf(o.Exported(t)); got != series {
		t.Errorf("exported %s, want %s", got, series)
	}
}

// After 1,000 objects have come and gone, as controllers handle them, there are as many series as before.
func TestMetricsOfAThousandObjects(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		o := operatortest.StartOperator(w.Place, operatortest.Spy{})
		idle := seriesOf(o.Exported(w.T))
		const rounds, each = 10, 34 // of three kinds
		for round := range rounds {
			for i := range each {
				name := fmt.Sprintf("object-%d-%d", round, i)
				w.Create(operatortest.NewLoadTest(name, "10.0.0.2:6379", func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Suspend = true
				}))
				w.Create(operatortest.NewFault(name, name, v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
					f.Spec.Suspend = true
				}))
				w.Create(operatortest.NewExperiment(name, "10.0.0.2:6379", func(e *v1alpha1.RedisExperiment) {
					e.Spec.Suspend = true
				}))
			}
			time.Sleep(time.Second)
			e := o.Exported(w.T)
			if n := e.Sum("redquake_fault_info", "state=Suspended") + e.Sum("redquake_loadtest_info", "state=Suspended") +
				e.Sum("redquake_experiment_info", "state=Suspended"); n != 3*each {
				w.T.Errorf("%v suspended objects, want %d", n, 3*each)
			}
			for i := range each {
				meta := metav1.ObjectMeta{Name: fmt.Sprintf("object-%d-%d", round, i), Namespace: w.Namespace}
				w.MustChange(w.Client.Delete(w.T.Context(), &v1alpha1.RedisFault{ObjectMeta: meta}))
				w.MustChange(w.Client.Delete(w.T.Context(), &v1alpha1.RedisExperiment{ObjectMeta: meta}))
				w.MustChange(w.Client.Delete(w.T.Context(), &v1alpha1.RedisLoadTest{ObjectMeta: meta}))
			}
			time.Sleep(time.Second)
		}
		mustExport(o, w.T, idle)
	})
}

package virtual

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// The operator ends just before or after each of its writes for a load test. Another process continues, and the result
// is the same: one run, every request counted once.
func TestLoadTestSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 12; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) {
				t.Parallel()
				operatortest.InWorld(t, func(w *operatortest.World) {
					redis := w.StartEngine()
					var writes atomic.Int32
					starts := operatortest.KeepRunning(w.Place, func(self func() *operatortest.Operator) operatortest.Spy {
						return operatortest.CrashAt(n, after, &writes, self)
					})
					w.Create(operatortest.NewLoadTest("run", redis.Address(), nil))
					test := w.TestEnds("run", 40*time.Second)
					if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
						w.T.Fatalf("%s", operatortest.Where(test.Status.Conditions))
					}
					if got := test.Status.Summary; got.Requests != 400 || got.Errors != 0 ||
						test.Status.Verdict != v1alpha1.VerdictPass {
						w.T.Errorf("%d requests, %d errors, verdict %s; want 400, 0, Pass", got.Requests, got.Errors, test.Status.Verdict)
					}
					operatortest.CheckRecord(w.T, w.Place, test, 400)
					if made := w.PodsIn(); made != 1 {
						w.T.Errorf("%d load pods are there, want 1", made)
					}
					w.T.Logf("%d processes, %d writes", starts.Load(), writes.Load())
				})
			})
		}
	}
}

// The operator is down until after the start instant, which was stored but not sent.
func TestRestartBetweenStoringAndSendingTheStart(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartRedis("")
		w.Kubelet.Start()
		var first *operatortest.Operator
		ready := make(chan struct{})
		first = operatortest.StartOperator(p, operatortest.Spy{After: func(w operatortest.Write) {
			<-ready
			if test, ok := w.Object.(*v1alpha1.RedisLoadTest); ok && test.Status.StartTime != nil {
				first.Crash()
			}
		}})
		close(ready)
		p.Create(operatortest.NewLoadTest("run", redis.Address(), nil))
		select {
		case <-first.Died():
		case <-time.After(20 * time.Second):
			t.Fatal("no start was stored")
		}
		stored := p.LoadTest("run").Status.StartTime
		first.Stop()
		time.Sleep(3 * time.Second)
		operatortest.StartOperator(p, operatortest.Spy{})
		test := p.TestEnds("run", 30*time.Second)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
			!test.Status.StartTime.After(stored.Time) {
			t.Fatalf("%s; started at %v, first at %v", operatortest.Where(test.Status.Conditions), test.Status.StartTime, stored)
		}
		if got := test.Status.Summary; got.Requests != 400 {
			t.Errorf("%d requests, want 400", got.Requests)
		}
		operatortest.CheckRecord(t, p, test, 400)
	})
}

// The operator restarts again and again during a run with a fault: one fault, one deleted pod, every request counted
// once.
func TestRestartsDuringAFault(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartRedis("")
		w.Kubelet.Start()
		lives := 0
		starts := operatortest.KeepRunning(p, func(self func() *operatortest.Operator) operatortest.Spy {
			born := time.Now()
			lives++
			life := 1500*time.Millisecond + time.Duration(lives)*173*time.Millisecond%time.Second
			return operatortest.Spy{Before: func(operatortest.Write) error {
				if time.Since(born) > life {
					self().Crash()
					return operatortest.ErrDead
				}
				return nil
			}}
		})
		const seconds = 34
		p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = operatortest.Length(
				seconds * time.Second)
		}))
		p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = operatortest.Length(
				3 * time.Second)
		}))
		f := p.FaultEnds("kill", 60*time.Second)
		operatortest.CheckExactImpact(t, f, redis.DownTime())
		if deleted := redis.PodsDeleted(); len(deleted) != 1 || len(f.Status.Targets) != 1 ||
			deleted[0] != f.Status.Targets[0].UID {
			t.Errorf("pods deleted %v, recorded %+v", deleted, f.Status.Targets)
		}
		test := p.TestEnds("run", 40*time.Second)
		if got := test.Status.Summary; got == nil || got.Requests != 200*seconds {
			t.Errorf("%s: %+v, want %d requests", operatortest.Where(test.Status.Conditions), got, 200*seconds)
		}
		operatortest.CheckRecord(t, p, test, 200*seconds)
		t.Logf("%d processes", starts.Load())
		if starts.Load() < 4 {
			t.Errorf("only %d processes", starts.Load())
		}
	})
}

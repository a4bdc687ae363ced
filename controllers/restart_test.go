package controllers

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// crashAt ends a process at the n-th write, counted over all processes: before the write reaches the API server, or
// just after it.
func crashAt(n int32, after bool, writes *atomic.Int32, self func() *operator) spy {
	return crashAtOf(n, after, writes, counts, self)
}

// crashAtOf counts other writes.
func crashAtOf(n int32, after bool, writes *atomic.Int32, counts func(write) bool, self func() *operator) spy {
	die := func() {
		if writes.Add(1) == n {
			self().Crash()
		}
	}
	if after {
		return spy{After: func(w write) {
			if counts(w) {
				die()
			}
		}}
	}
	return spy{Before: func(w write) error {
		if counts(w) {
			die()
			if self().Dead() {
				return errDead
			}
		}
		return nil
	}}
}

// counts excludes the checkpoints, whose times are not deterministic.
func counts(w write) bool { return w.Verb != "update" }

// The operator ends just before or after each of its writes for a load test. Another process continues, and the result
// is the same: one run, every request counted once.
func TestLoadTestSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 12; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(w *world) {
					redis := w.startEngine()
					var writes atomic.Int32
					starts := keepRunning(w.place, func(self func() *operator) spy { return crashAt(n, after, &writes, self) })
					w.create(newLoadTest("run", redis.Address(), nil))
					test := w.testEnds("run", 40*time.Second)
					if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
						w.t.Fatalf("%s", where(test.Status.Conditions))
					}
					if got := test.Status.Summary; got.Requests != 400 || got.Errors != 0 ||
						test.Status.Verdict != v1alpha1.VerdictPass {
						w.t.Errorf("%d requests, %d errors, verdict %s; want 400, 0, Pass", got.Requests, got.Errors, test.Status.Verdict)
					}
					checkRecord(w.t, w.place, test, 400)
					if made := w.podsIn(); made != 1 {
						w.t.Errorf("%d load pods are there, want 1", made)
					}
					w.t.Logf("%d processes, %d writes", starts.Load(), writes.Load())
				})
			})
		}
	}
}

// The operator is down until after the start instant, which was stored but not sent.
func TestRestartBetweenStoringAndSendingTheStart(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		var first *operator
		ready := make(chan struct{})
		first = startOperator(p, spy{After: func(w write) {
			<-ready
			if test, ok := w.Object.(*v1alpha1.RedisLoadTest); ok && test.Status.StartTime != nil {
				first.Crash()
			}
		}})
		close(ready)
		p.create(newLoadTest("run", redis.address(), nil))
		select {
		case <-first.Died():
		case <-time.After(20 * time.Second):
			t.Fatal("no start was stored")
		}
		stored := p.loadTest("run").Status.StartTime
		first.stop()
		time.Sleep(3 * time.Second)
		startOperator(p, spy{})
		test := p.testEnds("run", 30*time.Second)
		if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || !test.Status.StartTime.After(stored.Time) {
			t.Fatalf("%s; started at %v, first at %v", where(test.Status.Conditions), test.Status.StartTime, stored)
		}
		if got := test.Status.Summary; got.Requests != 400 {
			t.Errorf("%d requests, want 400", got.Requests)
		}
		checkRecord(t, p, test, 400)
	})
}

// The operator restarts again and again during a run with a fault: one fault, one deleted pod, every request counted
// once.
func TestRestartsDuringAFault(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		lives := 0
		starts := keepRunning(p, func(self func() *operator) spy {
			born := time.Now()
			lives++
			life := 1500*time.Millisecond + time.Duration(lives)*173*time.Millisecond%time.Second
			return spy{Before: func(write) error {
				if time.Since(born) > life {
					self().Crash()
					return errDead
				}
				return nil
			}}
		})
		const seconds = 34
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				seconds * time.Second)
		}))
		p.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = length(
				3 * time.Second)
		}))
		f := p.faultEnds("kill", 60*time.Second)
		checkExactImpact(t, f, redis.downTime())
		if deleted := redis.podsDeleted(); len(deleted) != 1 || len(f.Status.Targets) != 1 ||
			deleted[0] != f.Status.Targets[0].UID {
			t.Errorf("pods deleted %v, recorded %+v", deleted, f.Status.Targets)
		}
		test := p.testEnds("run", 40*time.Second)
		if got := test.Status.Summary; got == nil || got.Requests != 200*seconds {
			t.Errorf("%s: %+v, want %d requests", where(test.Status.Conditions), got, 200*seconds)
		}
		checkRecord(t, p, test, 200*seconds)
		t.Logf("%d processes", starts.Load())
		if starts.Load() < 4 {
			t.Errorf("only %d processes", starts.Load())
		}
	})
}

package controllers

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// crashAt makes a process that dies at the n-th write of an operator, counted over all its lives: before the write reaches the API
// server, or just after it.
func crashAt(n int32, after bool, writes *atomic.Int32, self func() *operator) spy {
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

// counts leaves out the checkpoints, which come whenever they do.
func counts(w write) bool { return w.Verb != "update" }

// The operator dies at every write of a load test's life, just before or just after it; another process goes on, and the result is the
// same: one run, every request counted once.
func TestLoadTestSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 12; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(w *world) {
					redis := w.startRedis("")
					w.kubelet.Start()
					var writes atomic.Int32
					starts := keepRunning(w.place, func(self func() *operator) spy { return crashAt(n, after, &writes, self) })
					w.create(newLoadTest("run", redis.address(), nil))
					test := w.testEnds("run", 40*time.Second)
					if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
						w.t.Fatalf("%s", where(test.Status.Conditions))
					}
					if got := test.Status.Summary; got.Requests != 400 || got.Errors != 0 || test.Status.Verdict != v1alpha1.VerdictPass {
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

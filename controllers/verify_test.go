package controllers

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

func verifies(test *v1alpha1.RedisLoadTest) {
	test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "25%"}
	test.Spec.Objectives = &v1alpha1.Objectives{MaxLostWrites: new(int64(0))}
}

// checkNothingLost checks the number of acknowledged ledger writes, and that none is lost.
func checkNothingLost(t *testing.T, test *v1alpha1.RedisLoadTest, acknowledged int64) {
	t.Helper()
	st := &test.Status
	v := st.Verification
	if v == nil || v.Acknowledged != acknowledged || v.LostWrites == nil || *v.LostWrites != 0 || v.Unread != "" ||
		v.SawErrors != nil {
		t.Fatalf("verification %+v, want %d acknowledged", v, acknowledged)
	}
	// Not the verdict: on a busy machine a real load generator may be the bottleneck, and the run Inconclusive.
	if o := st.Objectives; st.Summary.LostWrites == nil || *st.Summary.LostWrites != 0 || len(o) != 1 || o[0].Met == nil ||
		!*o[0].Met {
		t.Errorf("summary %+v, objectives %+v", st.Summary, o)
	}
}

// A server without persistence is killed: every write before that is lost, and attributed to the fault, although it
// finished before the load.
func TestKillLosesAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			verifies(test)
			test.Spec.Load.Duration = length(18 * time.Second)
		}))
		p.create(newFault("kill", "run", v1alpha1.FaultPodKill, nil))
		f := p.faultEnds("kill", 60*time.Second)
		test := p.testEnds("run", 60*time.Second)
		v := test.Status.Verification
		// A quarter of 200/s until the kill: the fourth is due 17.5 ms after the start, each further one 20 ms later.
		until := redis.firstKill().Sub(test.Status.StartTime.Time)
		want := int64((until + 2500*time.Microsecond) / (20 * time.Millisecond))
		if v == nil || v.LostWrites == nil || *v.LostWrites != want ||
			v.FirstLost.Sub(test.Status.StartTime.Time) != 17500*time.Microsecond {
			t.Fatalf("%+v, want %d lost, until %s", v, want, until)
		}
		if o := test.Status.Objectives; len(o) != 1 || o[0].Met == nil || *o[0].Met ||
			string(o[0].Actual) != fmt.Sprint(*v.LostWrites) {
			t.Errorf("objectives %+v", o)
		}
		i := f.Status.Impact
		if i == nil || i.LostWrites == nil || *i.LostWrites != *v.LostWrites || i.SawErrors == nil || *i.FirstLost >= 0 ||
			i.LastLost.Duration() > time.Second {
			t.Fatalf("the fault is complete without its losses: %+v", i)
		}
		t.Logf("lost %d of %d, from %s to %s after the kill; %s", *i.LostWrites, v.Acknowledged, i.FirstLost.Duration(),
			i.LastLost.Duration(), v.Settings)
	})
}

// The results of the ledgers are stored before the pods are released, wherever the operator ends.
func TestVerificationSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(6); n <= 13; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(w *world) {
					p, t := w.place, w.t
					redis := w.startEngine()
					var writes atomic.Int32
					keepRunning(p, func(self func() *operator) spy { return crashAt(n, after, &writes, self) })
					p.create(newLoadTest("run", redis.Address(), verifies))
					test := p.testEnds("run", 60*time.Second)
					if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
						t.Fatalf("%s", where(test.Status.Conditions))
					}
					checkNothingLost(t, test, 100)
					t.Logf("%d writes", writes.Load())
				})
			})
		}
	}
}

package redisloadtest_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// A server without persistence is killed: every write before that is lost, and attributed to the fault, although it
// finished before the load.
func TestKillLosesAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{
		Load:   operatortest.Lasting(18*time.Second, operatortest.Verifies),
		Faults: []*v1alpha1.RedisFault{operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, nil)},
	}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		f := p.FaultEnds("kill", 60*time.Second)
		test := p.TestEnds("run", 60*time.Second)
		v := test.Status.Verification
		// A quarter of 200/s until the kill: the fourth is due 17.5 ms after the start, each further one 20 ms later.
		until := p.Redis.FirstKill().Sub(test.Status.StartTime.Time)
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
		if i == nil || i.LostWrites == nil || *i.LostWrites != *v.LostWrites || i.SawErrors == nil ||
			i.FirstLost.Duration >= 0 ||
			i.LastLost.Duration > time.Second {
			t.Fatalf("the fault is complete without its losses: %+v", i)
		}
		t.Logf("lost %d of %d, from %s to %s after the kill; %s", *i.LostWrites, v.Acknowledged, i.FirstLost.Duration,
			i.LastLost.Duration, v.Settings)
	})
}

// The results of the ledgers are stored before the pods are released, wherever the operator ends.
func TestVerificationSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(6); n <= 13; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) {
				t.Parallel()
				operatortest.InWorld(t, func(w *operatortest.World) {
					p, t := w.Place, w.T
					redis := w.StartEngine()
					var writes atomic.Int32
					operatortest.KeepRunning(p, func(self func() *operatortest.Operator) operatortest.Spy {
						return operatortest.CrashAt(n, after, &writes, self)
					})
					p.Create(operatortest.NewLoadTest("run", redis.Address(), operatortest.Verifies))
					test := p.TestEnds("run", 60*time.Second)
					if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
						t.Fatalf("%s", operatortest.Where(test.Status.Conditions))
					}
					operatortest.CheckNothingLost(t, test, 100)
					t.Logf("%d writes", writes.Load())
				})
			})
		}
	}
}

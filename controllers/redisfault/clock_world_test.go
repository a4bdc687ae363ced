package redisfault_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthWallClockOfTheOperatorIsSet: somebody sets the clock of the operator's node between the start of a load and
// a fault. The figures of the fault, an outage of 400 ms, are those without it.
func TestTruthWallClockOfTheOperatorIsSet(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{5 * time.Second, -5 * time.Second} {
		operatortest.Scenario{Load: operatortest.Lasting(60 * time.Second)}.Run(t, func(w *operatortest.World) {
			w.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger = v1alpha1.FaultTrigger{After: operatortest.Length(20 * time.Second)}
			}))
			w.Until("the load has started", time.Minute, func() bool {
				test := operatortest.NewLoadTest("run", w.Redis.Address(), nil)
				return w.Read(test) && test.Status.StartTime != nil && time.Since(test.Status.StartTime.Time) > 10*time.Second
			}, func() string { return "" })
			w.Clock.Ahead.Add(int64(by))
			f := w.FaultEnds("kill", 2*time.Minute)
			down := w.Redis.DownTime()
			i := f.Status.Impact
			if i == nil || i.Outage == nil || i.RecoveryTime == nil {
				t.Fatalf("impact %+v", i)
			}
			scenario := fmt.Sprintf("the operator's clock is set by %v before a fault", by)
			near := func(a, b time.Duration) bool { return (a - b).Abs() <= 20*time.Millisecond }
			outage, recovery := i.Outage.Value.Duration, i.RecoveryTime.Value.Duration
			truth.Report(t, "T2", scenario+": outage", down.String(), outage.String(), near(outage, down))
			truth.Report(t, "T2", scenario+": recoveryTime", down.String(), recovery.String(), near(recovery, down))
			at, truly := f.Status.InjectedOffset.Duration, f.Status.InjectedAt.Sub(f.Status.LoadStartTime.Time)-by
			truth.Report(t, "T2", scenario+": injectedOffset", truly.String(), at.String(), (at-truly).Abs() <= time.Millisecond)
			if len(i.Doubts) > 0 {
				t.Errorf("%s: doubts %+v", scenario, i.Doubts)
			}
			test := w.TestEnds("run", 2*time.Minute)
			if a := test.Status.Anomalies; len(a) > 0 {
				t.Errorf("%s: anomalies %+v", scenario, a)
			}
		})
	}
}

//go:build integration

package operator

import (
	"os"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

const demoOut = "REDQUAKE_DEMO_OUT" // names the file of the objects

// TestRunForPictures kills a real Redis under a real load, and keeps the finished objects and the record for the
// pictures of the documentation. It takes a minute.
func TestRunForPictures(t *testing.T) {
	file := os.Getenv(demoOut)
	if file == "" {
		t.Skip("only where REDQUAKE_DEMO_OUT names the file of the objects: make screenshots")
	}
	p := operatortest.Scenario{}.OnAPIServer(t, "--appendonly", "yes")
	p.Create(operatortest.NewLoadTest("checkout-cache", p.Redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		operatortest.Verifies(test)
		test.Spec.Verify.Share = "1%"
		test.Spec.Pods.Count = 2
		test.Spec.Client.Connections = 20
		test.Spec.Observe.Interval.Duration = 100 * time.Millisecond
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:     new(int32(1000)),
			RampUp:   operatortest.Length(3 * time.Second),
			WarmUp:   operatortest.Length(5 * time.Second),
			Duration: operatortest.Length(50 * time.Second),
		}
		test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("1%"), MaxLostWrites: new(int64(0))}
	}))
	p.Create(operatortest.NewFault("kill-primary", "checkout-cache", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(12 * time.Second)}
		f.Spec.Objectives = &v1alpha1.FaultObjectives{
			MaxOutage:       operatortest.Length(5 * time.Second),
			MaxRecoveryTime: operatortest.Length(30 * time.Second),
			MaxLostWrites:   new(int64(0)),
		}
	}))
	in := subject.Input{Faults: []v1alpha1.RedisFault{*p.FaultEnds("kill-primary", 3*time.Minute)}}
	in.Test = p.TestEnds("checkout-cache", 3*time.Minute)
	p.KeepRun(file, &in, p.RecordOf("checkout-cache", &in))
	d, err := run.Fault(in, "kill-primary")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s %s", d.Verdict, d.Finding, d.Reason)
}

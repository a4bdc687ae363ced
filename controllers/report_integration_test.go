//go:build integration

package controllers

import (
	"os"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report/run"
)

const demoOut = "REDQUAKE_DEMO_OUT" // names the file of the objects

// TestRunForPictures kills a real Redis under a real load, and keeps the finished objects and the record for the
// pictures of the documentation. It takes a minute.
func TestRunForPictures(t *testing.T) {
	file := os.Getenv(demoOut)
	if file == "" {
		t.Skip("only where REDQUAKE_DEMO_OUT names the file of the objects: make screenshots")
	}
	p := newPlace(t)
	redis := startRedis(p, "--appendonly", "yes")
	startKubelet(p, nil)
	startOperator(p, spy{})
	p.create(newLoadTest("checkout-cache", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		verifies(test)
		test.Spec.Verify.Share = "1%"
		test.Spec.Pods.Count = 2
		test.Spec.Client.Connections = 20
		test.Spec.Observe.Interval.Duration = 100 * time.Millisecond
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:     new(int32(1000)),
			RampUp:   length(3 * time.Second),
			WarmUp:   length(5 * time.Second),
			Duration: length(50 * time.Second),
		}
		test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("1%"), MaxLostWrites: new(int64(0))}
	}))
	p.create(newFault("kill-primary", "checkout-cache", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(12 * time.Second)}
		f.Spec.Objectives = &v1alpha1.FaultObjectives{
			MaxOutage:       length(5 * time.Second),
			MaxRecoveryTime: length(30 * time.Second),
			MaxLostWrites:   new(int64(0)),
		}
	}))
	in := run.Input{Faults: []v1alpha1.RedisFault{*p.faultEnds("kill-primary", 3*time.Minute)}}
	in.Test = p.testEnds("checkout-cache", 3*time.Minute)
	p.keepRun(file, &in, p.recordOf("checkout-cache", &in))
	d, err := run.Fault(in, "kill-primary")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s %s", d.Verdict, d.Finding, d.Reason)
}

package figures

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/builders"
	"github.com/redquake/redquake/internal/testing/truth"
)

// windowOf returns the window of a fault that was injected 40 s after the start of a load, which is observed after 5
// minutes.
func windowOf(kind v1alpha1.FaultType, change func(*v1alpha1.RedisFaultStatus)) summary.Window {
	at := func(after time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(t0.Add(after))) }
	f := v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{
		Action:           v1alpha1.Action{Type: kind},
		Duration:         &metav1.Duration{Duration: 100 * time.Second},
		RecoveryDeadline: metav1.Duration{Duration: 20 * time.Second},
	}}
	f.Status.InjectedAt, f.Status.Impact = at(40*time.Second), &v1alpha1.Impact{}
	f.Status.RevertedAt = at(140 * time.Second)
	change(&f.Status)
	s := &scope.Test{
		Plan:   builders.Plan(),
		Faults: []v1alpha1.RedisFault{f},
		Seen:   lifecycle.LoadTest{Course: lifecycle.Course{StartedAt: t0}},
	}
	return FaultWindows(s, t0.Add(5*time.Minute))[0]
}

// A setting that is held for 100 s is in the window of its fault all that time, whether the load recovered from it or
// not.
func TestTruthLastingFaultExplainsItsStay(t *testing.T) {
	never := func(*v1alpha1.RedisFaultStatus) {}
	recovered := func(after time.Duration) func(*v1alpha1.RedisFaultStatus) {
		return func(s *v1alpha1.RedisFaultStatus) {
			s.Impact.Recovered, s.Impact.RecoveryTime = true, &v1alpha1.BoundedDuration{Value: v1alpha1.DurationOf(after)}
		}
	}
	for _, c := range []struct {
		name   string
		kind   v1alpha1.FaultType
		change func(*v1alpha1.RedisFaultStatus)
		end    time.Duration
	}{
		{"held for 100 s, never recovered", v1alpha1.FaultConfig, never, 161 * time.Second},
		{
			"held for 100 s, recovered 5 s after its revert", v1alpha1.FaultConfig, recovered(105 * time.Second),
			146 * time.Second,
		},
		{"held for 100 s without a dip", v1alpha1.FaultConfig, recovered(0), 141 * time.Second},
		{
			"not reverted by the end of the load",
			v1alpha1.FaultConfig,
			func(s *v1alpha1.RedisFaultStatus) { s.RevertedAt = nil },
			321 * time.Second,
		},
		{
			"its revert was abandoned",
			v1alpha1.FaultConfig,
			func(s *v1alpha1.RedisFaultStatus) { s.Targets = []v1alpha1.FaultTarget{{RevertAbandoned: true}} },
			321 * time.Second,
		},
		{"a kill that was never recovered from", v1alpha1.FaultProcessCrash, never, 61 * time.Second},
		{"a kill that recovered", v1alpha1.FaultProcessCrash, recovered(3 * time.Second), 44 * time.Second},
	} {
		got := windowOf(c.kind, c.change)
		truth.Report(t, "T20", "the window of a fault, "+c.name, fmt.Sprint(c.end), fmt.Sprint(got.To),
			got.To == c.end && got.From == 40*time.Second-100*time.Millisecond)
	}
}

// Every kind tells without a cluster whether it lasts.
func TestEveryKindTellsWhetherItLasts(t *testing.T) {
	for _, kind := range fault.Types() {
		for _, engine := range []v1alpha1.Engine{"", v1alpha1.EngineChaosMesh} {
			_ = fault.TraitsOf(&v1alpha1.RedisFaultSpec{Engine: engine, Action: v1alpha1.Action{Type: kind}}).Stays()
		}
	}
	if !fault.TraitsOf(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultHang}}).Stays() ||
		fault.TraitsOf(&v1alpha1.RedisFaultSpec{}).Stays() {
		t.Error("a hang lasts, nothing does not")
	}
}

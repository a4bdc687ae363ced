package figures

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
)

// A fault is active from its completion on all targets to its own end or to the begin of its revert.
func TestActiveWindow(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fault := &v1alpha1.RedisFault{
		Status: v1alpha1.RedisFaultStatus{InjectedAt: new(metav1.NewMicroTime(start.Add(30 * time.Second)))},
	}
	s := &scope.Fault{
		Fault:  fault,
		Traits: contract.Traits{Lasts: 30 * time.Second},
		Seen:   lifecycle.Fault{Effect: lifecycle.Effect{ActiveAt: start.Add(40 * time.Second)}},
	}
	expect := func(when string, want summary.Window) {
		t.Helper()
		if got := activeWindow(s, 30*time.Second); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect("not complete", summary.Window{})
	s.Seen.InjectedAll = true
	expect("active", summary.Window{From: 40 * time.Second, To: 70 * time.Second})
	s.Fault.Status.RevertingSince = new(metav1.NewMicroTime(start.Add(71 * time.Second)))
	expect("reverted late", summary.Window{From: 40 * time.Second, To: 70 * time.Second})
	s.Fault.Status.RevertingSince = new(metav1.NewMicroTime(start.Add(50 * time.Second)))
	expect("aborted", summary.Window{From: 40 * time.Second, To: 50 * time.Second})
	s.Traits.Lasts = 0
	expect("nothing that stays", summary.Window{})
}

// The recovery from a fault that waits for some of its targets is awaited from the last of them on, whenever that is.
func TestActiveUntilTheLastTarget(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &scope.Fault{
		Fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{InjectedAt: new(metav1.NewMicroTime(start))}},
		Seen:  lifecycle.Fault{Effect: lifecycle.Effect{ActiveAt: start.Add(140 * time.Second)}},
	}
	for _, tc := range []struct {
		waits, all bool
		want       time.Duration
	}{
		{false, true, 0},                 // a kill
		{true, false, 200 * time.Second}, // some are still to come
		{true, true, 140 * time.Second},
	} {
		s.Traits.Waits, s.Seen.InjectedAll = tc.waits, tc.all
		if got := activeFor(s, start.Add(200*time.Second)); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

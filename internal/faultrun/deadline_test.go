package faultrun

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// A fault whose time is over is reverted although nobody asks for it, half a second later: the reconciler has a last
// look first. A fault that does not last is not.
func TestReverterHasADeadline(t *testing.T) {
	for _, lasts := range []time.Duration{20 * time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}, Of: contract.Traits{Lasts: lasts}}
			adopted(t.Context(), t, reverttest.ActiveFault(t, "redis-0"), nil, injector)
			time.Sleep(time.Hour)
			switch calls := injector.Calls(); {
			case lasts == 0 && len(calls) > 0:
				t.Errorf("reverted at %s", calls)
			case lasts > 0 && (len(calls) != 1 || calls[0].Sub(began) != lasts+deadlineSlack):
				t.Errorf("reverted at %v, want after %s", calls, lasts+deadlineSlack)
			}
		})
	}
}

// halfInjected is a fault whose first target is active, and whose second one was tried, with a result.
func halfInjected(t *testing.T, result func(second *v1alpha1.FaultTarget)) *v1alpha1.RedisFault {
	t.Helper()
	f := reverttest.ActiveFault(t, "redis-0", "redis-1")
	second := &f.Status.Targets[1]
	second.InjectedAt, second.ActiveAt, second.IntendedAt, second.Attempts = nil, nil, f.Status.StartTime, 1
	result(second)
	return f
}

func failed(t *v1alpha1.FaultTarget) { t.LastError = "i/o timeout" }

// perhapsInjected is a fault whose only injection has failed: the server may have obeyed, and its response may be lost.
func perhapsInjected(t *testing.T) *v1alpha1.RedisFault {
	t.Helper()
	f := halfInjected(t, failed)
	f.Status.InjectedAt, f.Status.Targets = nil, f.Status.Targets[1:]
	return f
}

// A fault that is not injected everywhere ends when the reconciler would stop trying, although nobody asks for it.
// Until then its process has something to revert.
func TestHalfInjectedFaultHasADeadline(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		fault func(t *testing.T) *v1alpha1.RedisFault
		want  time.Duration
	}{
		{"the only injection failed", 0, perhapsInjected, lifecycle.InjectPatience},
		{"one of two failed", 0, func(t *testing.T) *v1alpha1.RedisFault {
			return halfInjected(t,
				failed)
		}, lifecycle.InjectPatience},
		{"one of two is under way", 0, func(t *testing.T) *v1alpha1.RedisFault {
			return halfInjected(t, func(t *v1alpha1.FaultTarget) { t.Progress = "1 of 3" })
		}, lifecycle.StepsPatience},
		{"one of two may take longer", time.Hour, func(t *testing.T) *v1alpha1.RedisFault {
			return halfInjected(t, func(t *v1alpha1.FaultTarget) { t.Progress = "1 of 3" })
		}, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				injector := &reverttest.Reverts{
					Answers: []reverttest.Answer{reverttest.Done},
					Of:      contract.Traits{Lasts: 20 * time.Second, Takes: tc.takes},
				}
				f := tc.fault(t)
				f.CreationTimestamp = metav1.Time{Time: began.Add(time.Hour)} // its own deadline is later
				v := adopted(t.Context(), t, f, nil, injector)
				if pending := v.session.registry.Pending(); len(pending) != 1 {
					t.Errorf("pending: %v", pending)
				}
				time.Sleep(2 * time.Hour)
				calls := injector.Calls()
				if len(calls) != len(f.Status.Targets) || calls[0].Sub(began) != tc.want+deadlineSlack {
					t.Errorf("reverted at %v, want after %s", calls, tc.want+deadlineSlack)
				}
				if pending := v.session.registry.Pending(); len(pending) != 0 {
					t.Errorf("pending after the revert: %v", pending)
				}
			})
		})
	}
}

// A fault that is recorded, and that was not tried, is not reverted by itself, and does not keep its process.
func TestRecordedFaultHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &reverttest.Reverts{
			Answers: []reverttest.Answer{reverttest.Done},
			Of:      contract.Traits{Lasts: 20 * time.Second},
		}
		f := perhapsInjected(t)
		f.Status.Targets[0].Attempts, f.Status.Targets[0].LastError = 0, ""
		v := adopted(t.Context(), t, f, nil, injector)
		time.Sleep(time.Hour)
		if pending, calls := v.session.registry.Pending(), injector.Calls(); len(pending) > 0 || len(calls) > 0 {
			t.Errorf("pending %v, reverted at %v", pending, calls)
		}
	})
}

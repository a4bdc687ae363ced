package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
)

// answer is the result of a call of Revert.
type answer struct {
	progress contract.Progress
	err      error
}

// stubborn is an injector whose revert has a given result.
type stubborn struct {
	fault.Unknown
	answer
	reverts int
}

func (s *stubborn) Revert(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
	s.reverts++
	return s.progress, s.err
}

func (*stubborn) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) { return false, nil }

func (*stubborn) ManualRevertCommand(*v1alpha1.FaultTarget) string { return "do this" }

// step reconciles a recorded fault that is to be reverted.
func (s *scope) step(t *testing.T, r *Reconciler) lifecycle.FaultAction {
	t.Helper()
	s.seen = lifecycle.Fault{Finalizer: true, Abort: true, LastCalled: r.lastCalled(s)}
	if s.fault.DeletionTimestamp != nil {
		s.seen.Deleting = true
	}
	observeRecords(s)
	d := lifecycle.NextForFault(s.seen, r.Clock.Now())
	if d.Action == lifecycle.FaultRevert || d.Action == lifecycle.FaultAbandon {
		r.recordCall(s, d, r.perform(t.Context(), s, d))
	}
	return d.Action
}

// A revert is abandoned when it has failed ten times in a row and for long enough; a successful step resets the count. A deletion waits no longer
// than that.
func TestRevertIsAbandoned(t *testing.T) {
	refusal, step := answer{err: errors.New("no")}, answer{progress: contract.Underway("1 of 3")}
	for _, tc := range []struct {
		name      string
		answers   []answer // in order, one each second; the last one repeats
		deleted   time.Duration
		after     time.Duration
		abandoned bool
		attempts  int32
	}{
		{"errors for 30s", []answer{refusal}, 0, 30 * time.Second, false, 30},
		{"errors for 45s", []answer{refusal}, 0, 45 * time.Second, true, 41},
		{"one error after a minute of steps", append(slices.Repeat([]answer{step}, 60), refusal), 0, 62 * time.Second, false, 2},
		{"errors after a minute of steps", append(slices.Repeat([]answer{step}, 60), refusal), 0, 75 * time.Second, true, 10},
		{"steps for an hour", []answer{step}, 0, time.Hour, false, 0},
		{"deleted in the midst of steps", []answer{step}, 50 * time.Second, 60 * time.Second, false, 0},
		{"deleted, and steps for too long", []answer{step}, 50 * time.Second, 95 * time.Second, true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			clock := testingclock.NewFakePassiveClock(start)
			r := &Reconciler{Clock: clock}
			injector := &stubborn{}
			s := &scope{fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{StartTime: new(metav1.NewMicroTime(start)), Targets: []v1alpha1.FaultTarget{{Pod: "redis-0"}}}}, injector: injector}
			target := &s.fault.Status.Targets[0]
			for i := 0; clock.Since(start) < tc.after; i++ {
				if tc.deleted > 0 && clock.Since(start) >= tc.deleted {
					s.fault.DeletionTimestamp = &metav1.Time{Time: start.Add(tc.deleted)}
				}
				injector.answer = tc.answers[min(i, len(tc.answers)-1)]
				s.step(t, r)
				clock.SetTime(clock.Now().Add(time.Second))
			}
			if target.RevertAbandoned != tc.abandoned || (target.ManualRevertCommand == "do this") != tc.abandoned || target.RevertAttempts != tc.attempts {
				t.Errorf("abandoned %v after %d errors (%q), want %v after %d", target.RevertAbandoned, target.RevertAttempts, target.ManualRevertCommand, tc.abandoned, tc.attempts)
			}
		})
	}
}

// A new operator process retries a revert before it abandons it.
func TestRevertIsTriedBeforeItIsAbandoned(t *testing.T) {
	long := metav1.NewMicroTime(time.Now().Add(-time.Hour))
	clock := testingclock.NewFakePassiveClock(time.Now())
	r := &Reconciler{Clock: clock}
	injector := &stubborn{answer: answer{err: errors.New("no")}}
	s := &scope{fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{StartTime: &long, RevertingSince: &long, Targets: []v1alpha1.FaultTarget{{Pod: "redis-0", RevertAttempts: 99}}}}, injector: injector}
	if action := s.step(t, r); action != lifecycle.FaultRevert || injector.reverts != 1 {
		t.Errorf("%s, %d calls", action, injector.reverts)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if action := s.step(t, r); action != lifecycle.FaultAbandon || s.fault.Status.RevertedAt == nil {
		t.Errorf("%s, %+v", action, s.fault.Status)
	}
}

// apart is an injector whose reverts wait until all of them have begun.
type apart struct {
	stubborn
	together sync.WaitGroup
}

func (a *apart) Revert(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
	a.together.Done()
	a.together.Wait()
	return contract.Progress{}, nil
}

// Separate targets are reverted at once: one after another, they would block here.
func TestSeparateTargetsAreRevertedAtOnce(t *testing.T) {
	injector := &apart{}
	injector.together.Add(12)
	r := &Reconciler{Clock: testingclock.NewFakePassiveClock(time.Now())}
	s := &scope{fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{Targets: make([]v1alpha1.FaultTarget, 12)}}, injector: injector, traits: contract.Traits{Separate: true}}
	if o := r.revert(t.Context(), s); !o.again || s.fault.Status.RevertedAt == nil {
		t.Errorf("%+v: %+v", o, s.fault.Status)
	}
}

// Every action on a target is logged with the type of the fault and the target; a retry is logged at V(1), with its cause.
func TestFaultDecisionsAreLogged(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
	ctx := log.IntoContext(t.Context(), logger)
	r := &Reconciler{Clock: testingclock.NewFakePassiveClock(time.Now())}
	f := &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultHang}}}
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0"}}
	injector := &stubborn{answer: answer{err: errors.New("connection refused")}}
	s := &scope{fault: f, injector: injector, seen: lifecycle.Fault{Reverting: true, LastCalled: time.Now(), Deleting: true, Pending: []lifecycle.Pending{{Pod: "redis-0"}}}}
	target := &f.Status.Targets[0]
	s.markInjected(ctx, target, injection{at: metav1.NewMicroTime(time.Now())})
	r.revert(ctx, s)
	r.abandon(ctx, s)
	target.RevertAbandoned, injector.answer = false, answer{}
	r.revert(ctx, s)
	text := strings.Join(lines, "\n")
	for _, want := range []string{`"level"=0 "msg"="Injected"`, `"level"=1 "msg"="Retrying to revert"`, `"cause"="connection refused"`, `"level"=0 "msg"="Abandoned the revert"`, `"level"=0 "msg"="Reverted"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no line has %s:\n%s", want, text)
		}
	}
	for _, line := range lines {
		if !strings.Contains(line, `"faultType"="Hang"`) || !strings.Contains(line, `"target"="redis-0"`) {
			t.Errorf("the line names no type or no target: %s", line)
		}
	}
}

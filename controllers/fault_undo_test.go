package controllers

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/runs"
)

// stubborn is an injector whose undoing says what it is told to say.
type stubborn struct {
	fault.Unknown
	says    error
	reverts int
}

func (s *stubborn) Revert(context.Context, *v1alpha1.FaultTarget) error {
	s.reverts++
	return s.says
}

func (*stubborn) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) { return false, nil }
func (*stubborn) ManualRevertCommand(*v1alpha1.FaultTarget) string           { return "do this" }

// Undoing is given up when it has erred ten times in a row and for long enough; after steps that went well it begins to count anew. Who deletes
// the fault waits no longer than that, from the deletion on.
func TestUndoingIsGivenUp(t *testing.T) {
	refusal, step := errors.New("no"), &fault.InProgress{Message: "1 of 3"}
	for _, tc := range []struct {
		name     string
		says     []error // in order, one a second from the start on, the last for ever
		deleted  time.Duration
		after    time.Duration
		givenUp  bool
		attempts int32
	}{
		{"errors for 30s", []error{refusal}, 0, 30 * time.Second, false, 30},
		{"errors for 45s", []error{refusal}, 0, 45 * time.Second, true, 42},
		{"one error after a minute of steps", append(repeated(step, 60), refusal), 0, 62 * time.Second, false, 2},
		{"errors after a minute of steps", append(repeated(step, 60), refusal), 0, 75 * time.Second, true, 10},
		{"steps for an hour", []error{step}, 0, time.Hour, false, 0},
		{"deleted in the midst of steps", []error{step}, 50 * time.Second, 60 * time.Second, false, 0},
		{"deleted, and steps for too long", []error{step}, 50 * time.Second, 95 * time.Second, true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			start := time.Now()
			clock := testingclock.NewFakePassiveClock(start)
			r := &RedisFaultReconciler{Clock: clock}
			injector := &stubborn{}
			s := &faultScope{fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{Targets: []v1alpha1.FaultTarget{{Pod: "redis-0"}}}}, injector: injector}
			target := &s.fault.Status.Targets[0]
			for i := 0; clock.Since(start) < tc.after; i++ {
				if tc.deleted > 0 && clock.Since(start) >= tc.deleted {
					s.seen.Deleting, s.fault.DeletionTimestamp = true, &metav1.Time{Time: start.Add(tc.deleted)}
				}
				injector.says = tc.says[min(i, len(tc.says)-1)]
				r.revert(t.Context(), s)
				clock.SetTime(clock.Now().Add(time.Second))
			}
			if target.RevertAbandoned != tc.givenUp || (target.ManualRevertCommand == "do this") != tc.givenUp || target.RevertAttempts != tc.attempts {
				t.Errorf("given up %v after %d errors (%q), want %v after %d", target.RevertAbandoned, target.RevertAttempts, target.ManualRevertCommand, tc.givenUp, tc.attempts)
			}
		})
	}
}

// apart is an injector whose undoing waits until so many others are being undone, too.
type apart struct {
	stubborn
	together sync.WaitGroup
}

func (a *apart) Revert(context.Context, *v1alpha1.FaultTarget) error {
	a.together.Done()
	a.together.Wait()
	return nil
}

// Servers that have nothing to do with one another are undone at once: were it one after the other, this would wait for ever.
func TestSeparateTargetsAreUndoneAtOnce(t *testing.T) {
	injector := &apart{}
	injector.together.Add(12)
	r := &RedisFaultReconciler{Clock: testingclock.NewFakePassiveClock(time.Now())}
	s := &faultScope{fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{Targets: make([]v1alpha1.FaultTarget, 12)}}, injector: injector, traits: fault.Traits{Separate: true}}
	if o := r.revert(t.Context(), s); !o.again || s.fault.Status.RevertedAt == nil {
		t.Errorf("%+v: %+v", o, s.fault.Status)
	}
}

func repeated(err error, times int) []error {
	var all []error
	for range times {
		all = append(all, err)
	}
	return all
}

// A record that nothing was done by is made anew only after what it may have prepared was taken back.
func TestUntouchedTakesBackWhatWasPrepared(t *testing.T) {
	r := &RedisFaultReconciler{Clock: testingclock.NewFakePassiveClock(time.Now())}
	injector := &stubborn{}
	s := &faultScope{
		fault: &v1alpha1.RedisFault{Status: v1alpha1.RedisFaultStatus{Targets: []v1alpha1.FaultTarget{{Pod: "redis-0"}}}}, injector: injector,
		test: &v1alpha1.RedisLoadTest{}, run: runs.NewRegistry().Add("run", time.Now(), nil),
	}
	if !r.untouched(t.Context(), s) || injector.reverts != 1 {
		t.Errorf("not untouched, or not taken back: %d times", injector.reverts)
	}
	injector.says = errors.New("no")
	if r.untouched(t.Context(), s) {
		t.Error("untouched though it could not be taken back")
	}
}

// What is not complete is not called again at once: the write of its status would bring it back for ever.
func TestPause(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Now())
	r := &RedisFaultReconciler{Clock: clock}
	s := &faultScope{fault: &v1alpha1.RedisFault{}}
	s.fault.UID = "u"
	inject := lifecycle.Decision[lifecycle.FaultAction]{Action: lifecycle.FaultInject}
	observe := lifecycle.Decision[lifecycle.FaultAction]{Action: lifecycle.FaultObserve}
	if d := r.pause(s, inject); d != 0 {
		t.Errorf("the first call waits for %s", d)
	}
	r.tried(s, inject, outcome{})
	if d := r.pause(s, inject); d != betweenTries {
		t.Errorf("the second waits for %s", d)
	}
	if d := r.pause(s, observe); d != 0 {
		t.Errorf("to observe waits for %s", d)
	}
	clock.SetTime(clock.Now().Add(betweenTries))
	if d := r.pause(s, inject); d != 0 {
		t.Errorf("after its time it waits for %s", d)
	}
	r.tried(s, inject, outcome{again: true})
	if d := r.pause(s, inject); d != 0 {
		t.Errorf("what is complete waits for %s", d)
	}
}

// A load that goes to pods' addresses never finds the replacement of one, unless sentinels or the nodes of a cluster tell it.
func TestLosesReplacements(t *testing.T) {
	pods := &metav1.LabelSelector{}
	for _, tc := range []struct {
		name   string
		target v1alpha1.RedisTarget
		found  v1alpha1.Topology
		want   bool
	}{
		{"pods", v1alpha1.RedisTarget{PodSelector: pods}, v1alpha1.TopologyStandalone, true},
		{"pods, replicated", v1alpha1.RedisTarget{PodSelector: pods}, v1alpha1.TopologyReplication, true},
		{"pods of a cluster", v1alpha1.RedisTarget{PodSelector: pods}, v1alpha1.TopologyCluster, false},
		{"sentinels", v1alpha1.RedisTarget{PodSelector: pods, Sentinel: &v1alpha1.SentinelTarget{}}, v1alpha1.TopologySentinel, false},
		{"a Service", v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}}, v1alpha1.TopologyStandalone, false},
		{"addresses", v1alpha1.RedisTarget{Addresses: []string{"redis:6379"}}, v1alpha1.TopologyStandalone, false},
	} {
		test := &v1alpha1.RedisLoadTest{Spec: v1alpha1.RedisLoadTestSpec{Target: tc.target}, Status: v1alpha1.RedisLoadTestStatus{Target: &v1alpha1.TargetStatus{Topology: tc.found}}}
		if got := losesReplacements(test); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// What cannot be read keeps a fault from being recorded, and never a recorded one from being undone.
func TestTroubleOfARecordedFault(t *testing.T) {
	refusal := errors.New("secrets is forbidden")
	s := &faultScope{}
	if err := s.trouble(refusal); !errors.Is(err, refusal) || s.seen.Problem != nil {
		t.Errorf("before the record: %v, problem %+v", err, s.seen.Problem)
	}
	s.seen.Recorded = true
	if err := s.trouble(refusal); err != nil || s.seen.Problem == nil || s.seen.Problem.Message != refusal.Error() {
		t.Errorf("after it: %v, problem %+v", err, s.seen.Problem)
	}
	if err := (&faultScope{}).trouble(nil); err != nil {
		t.Error(err)
	}
}

package fault

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// answer is the result of a call of Revert.
type answer struct {
	progress contract.Progress
	err      error
}

// stubborn is an injector whose reverts have given results, in order; the last one repeats.
type stubborn struct {
	fault.Unknown
	traits  contract.Traits
	change  string // what each call puts into the record
	mu      sync.Mutex
	answers []answer
	reverts []time.Time
}

func (s *stubborn) Traits() contract.Traits { return s.traits }

func (s *stubborn) Revert(_ context.Context, t *v1alpha1.FaultTarget) (contract.Progress, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reverts = append(s.reverts, time.Now())
	if s.change != "" {
		t.Revert = &v1alpha1.RevertRecord{Version: 1, Data: s.change}
	}
	a := s.answers[min(len(s.reverts), len(s.answers))-1]
	return a.progress, a.err
}

func (s *stubborn) calls() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reverts)
}

func (*stubborn) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) { return false, nil }

func (*stubborn) ManualRevertCommand(*v1alpha1.FaultTarget) string { return "do this" }

var (
	refusal = answer{err: errors.New("no")}
	step    = answer{progress: contract.Underway("1 of 3")}
	done    = answer{}
)

// recordedFor is a fault that is active on some pods since now.
func recordedFor(t *testing.T, pods ...string) *v1alpha1.RedisFault {
	t.Helper()
	now := metav1.NewMicroTime(time.Now())
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slow", UID: "u", CreationTimestamp: metav1.Now()}}
	f.Status.StartTime, f.Status.InjectedAt = &now, &now
	for _, pod := range pods {
		f.Status.Targets = append(f.Status.Targets, v1alpha1.FaultTarget{Pod: pod, InjectedAt: &now, ActiveAt: &now, Revert: &v1alpha1.RevertRecord{Version: 1, Data: "before"}})
	}
	return f
}

// adopted starts the reverter of a fault that this process has not injected.
func adopted(ctx context.Context, t *testing.T, f *v1alpha1.RedisFault, injector contract.Injector) *reverter {
	t.Helper()
	live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(f.DeepCopy()).Build()
	all := NewReverters(nil)
	t.Cleanup(all.Close)
	return all.adopt(ctx, f, injector.Traits(), &means{live: live, statuses: live.Status(), build: func(context.Context) (contract.Injector, error) { return injector, nil }})
}

// A revert that fails is tried again and again, less and less often; a success resets that.
func TestRevertIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &stubborn{answers: append(slices.Repeat([]answer{refusal}, 20), step, step, refusal, done)}
		v := adopted(t.Context(), t, recordedFor(t, "redis-0"), injector)
		v.ask()
		time.Sleep(20 * time.Minute)
		p, _ := v.progress()
		if p.revertedAt == nil || p.targets[0].RevertedAt == nil || len(injector.calls()) != 24 {
			t.Fatalf("after %d calls: %+v", len(injector.calls()), p)
		}
		calls := injector.calls()
		for i, want := range map[int]time.Duration{1: 2 * revertEvery, 2: 4 * revertEvery, 15: revertAtMost, 20: revertAtMost, 21: revertEvery, 22: revertEvery, 23: 2 * revertEvery} {
			if got := calls[i].Sub(calls[i-1]); got != want {
				t.Errorf("call %d came after %s, want %s", i, got, want)
			}
		}
	})
}

// What a revert meets does not replace the reason why the injection was incomplete. Each step of it is an instant from which its patience counts.
func TestErrorsOfInjectionAndRevert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cause = "redis-1 started as a primary"
		injector := &stubborn{answers: []answer{step, refusal, done}}
		f := recordedFor(t, "redis-0")
		f.Status.Targets[0].ActiveAt, f.Status.Targets[0].LastError = nil, cause
		began := time.Now()
		v := adopted(t.Context(), t, f, injector)
		time.Sleep(10 * time.Second)
		if at := v.movedAt("redis-0"); !at.Equal(began) {
			t.Errorf("moved at %s, this process began at %s", at, began)
		}
		v.ask()
		for i, want := range []string{step.progress.Message, refusal.err.Error(), ""} {
			synctest.Wait()
			p, _ := v.progress()
			if got := p.targets[0]; got.LastError != cause || got.RevertError != want {
				t.Errorf("after attempt %d: the injection's error is %q, the revert's %q, want %q", i+1, got.LastError, got.RevertError, want)
			}
			if at := v.movedAt("redis-0"); i < 2 && !at.Equal(began.Add(10*time.Second)) {
				t.Errorf("after attempt %d: moved at %s, the step was at %s", i+1, at, began.Add(10*time.Second))
			}
			time.Sleep(2 * revertEvery)
		}
	})
}

// A fault whose time is over is reverted although nobody asks for it, half a second later: the reconciler has a last look first. A fault that does not
// last is not.
func TestReverterHasADeadline(t *testing.T) {
	for _, lasts := range []time.Duration{20 * time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			injector := &stubborn{answers: []answer{done}, traits: contract.Traits{Lasts: lasts}}
			adopted(t.Context(), t, recordedFor(t, "redis-0"), injector)
			time.Sleep(time.Hour)
			switch calls := injector.calls(); {
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
	f := recordedFor(t, "redis-0", "redis-1")
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

// A fault that is not injected everywhere ends when the reconciler would stop trying, although nobody asks for it. Until then its process has something to revert.
func TestHalfInjectedFaultHasADeadline(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration
		fault func(t *testing.T) *v1alpha1.RedisFault
		want  time.Duration
	}{
		{"the only injection failed", 0, perhapsInjected, lifecycle.InjectPatience},
		{"one of two failed", 0, func(t *testing.T) *v1alpha1.RedisFault { return halfInjected(t, failed) }, lifecycle.InjectPatience},
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
				injector := &stubborn{answers: []answer{done}, traits: contract.Traits{Lasts: 20 * time.Second, Takes: tc.takes}}
				f := tc.fault(t)
				f.CreationTimestamp = metav1.Time{Time: began.Add(time.Hour)} // its own deadline is later
				v := adopted(t.Context(), t, f, injector)
				if pending := v.of.Pending(); len(pending) != 1 {
					t.Errorf("pending: %v", pending)
				}
				time.Sleep(2 * time.Hour)
				calls := injector.calls()
				if len(calls) != len(f.Status.Targets) || calls[0].Sub(began) != tc.want+deadlineSlack {
					t.Errorf("reverted at %v, want after %s", calls, tc.want+deadlineSlack)
				}
				if pending := v.of.Pending(); len(pending) != 0 {
					t.Errorf("pending after the revert: %v", pending)
				}
			})
		})
	}
}

// A fault that is recorded, and that was not tried, is not reverted by itself, and does not keep its process.
func TestRecordedFaultHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &stubborn{answers: []answer{done}, traits: contract.Traits{Lasts: 20 * time.Second}}
		f := perhapsInjected(t)
		f.Status.Targets[0].Attempts, f.Status.Targets[0].LastError = 0, ""
		v := adopted(t.Context(), t, f, injector)
		time.Sleep(time.Hour)
		if pending, calls := v.of.Pending(), injector.calls(); len(pending) > 0 || len(calls) > 0 {
			t.Errorf("pending %v, reverted at %v", pending, calls)
		}
	})
}

// Another operator has completed what this process had injected in part: the fault stays for as long as it was asked to.
func TestReverterLeavesWhatAnotherHasCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		injector := &stubborn{answers: []answer{done}, traits: contract.Traits{Lasts: time.Minute}}
		f := halfInjected(t, failed)
		stored, completed := f.DeepCopy(), metav1.NewMicroTime(began.Add(10*time.Second))
		stored.Status.Targets[1].InjectedAt, stored.Status.Targets[1].ActiveAt = &completed, &completed
		all := NewReverters(nil)
		defer all.Close()
		live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(stored).Build()
		v := all.adopt(t.Context(), f, injector.Traits(), &means{live: live, statuses: live.Status(), build: func(context.Context) (contract.Injector, error) { return injector, nil }})
		v.learn(&scope{fault: f, injector: injector, traits: injector.traits}, "redis-1")
		time.Sleep(time.Hour)
		if calls := injector.calls(); len(calls) != 2 || calls[0].Sub(began) != 70*time.Second+deadlineSlack {
			t.Errorf("reverted at %v, want after %s", calls, 70*time.Second+deadlineSlack)
		}
	})
}

// What another operator has reverted is left alone: another fault may act on the server by now.
func TestReverterLeavesWhatIsReverted(t *testing.T) {
	for name, change := range map[string]func(stored *v1alpha1.RedisFault){
		"reverted": func(f *v1alpha1.RedisFault) { f.Status.RevertedAt = f.Status.StartTime },
		"recorded again": func(f *v1alpha1.RedisFault) {
			f.Status.StartTime = &metav1.MicroTime{Time: time.Now().Add(time.Second)}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			injector := &stubborn{answers: []answer{done}, traits: contract.Traits{Lasts: 20 * time.Second}}
			f := recordedFor(t, "redis-0")
			stored := f.DeepCopy()
			change(stored)
			all := NewReverters(nil)
			defer all.Close()
			live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(stored).Build()
			all.adopt(t.Context(), f, injector.Traits(), &means{live: live, statuses: live.Status(), build: func(context.Context) (contract.Injector, error) { return injector, nil }})
			time.Sleep(time.Minute)
			if calls := injector.calls(); len(calls) > 0 {
				t.Errorf("%s: reverted again, at %v", name, calls)
			}
		})
	}
}

// The object of a fault was removed by force: what it broke is reverted, and what it prepared, such as a taint. It may have been preparing at that moment.
func TestReverterOfARemovedObject(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T) *v1alpha1.RedisFault{
		"active":           func(t *testing.T) *v1alpha1.RedisFault { return recordedFor(t, "redis-0") },
		"perhaps injected": perhapsInjected,
		"only prepared": func(t *testing.T) *v1alpha1.RedisFault {
			f := perhapsInjected(t)
			f.Status.Targets[0].LastError, f.Status.Targets[0].Progress = "", "node node-1 is tainted from now on"
			return f
		},
		"about to begin": func(t *testing.T) *v1alpha1.RedisFault {
			f := perhapsInjected(t)
			f.Status.Targets[0].LastError, f.Status.Targets[0].Attempts = "", 0
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				injector := &stubborn{answers: []answer{refusal, done}, traits: contract.Traits{Lasts: time.Hour}}
				v := adopted(t.Context(), t, fault(t), injector)
				v.of.orphan(v.key, "")
				time.Sleep(time.Minute)
				if len(injector.calls()) != 2 || len(v.of.byID) != 0 {
					t.Errorf("%d calls, %d faults are left", len(injector.calls()), len(v.of.byID))
				}
			})
		})
	}
}

// The object of a fault was removed by force and created again at once, under its name: that is another fault.
func TestReverterOfARecreatedObject(t *testing.T) {
	for name, told := range map[string]bool{"a reconcile sees it": true, "at the end of its time": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				injector := &stubborn{answers: []answer{done}, traits: contract.Traits{Lasts: 20 * time.Second}}
				f := recordedFor(t, "redis-0")
				heir := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name, UID: "another"}}
				all := NewReverters(nil)
				defer all.Close()
				live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(heir).Build()
				all.adopt(t.Context(), f, injector.Traits(), &means{live: live, statuses: live.Status(), build: func(context.Context) (contract.Injector, error) { return injector, nil }})
				began, within := time.Now(), 30*time.Second
				if told {
					within = time.Second
					e := Ending{&Reconciler{Client: live, Reverters: all, Clock: clock.RealClock{}}}
					if _, err := e.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)}); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Minute)
				if calls := injector.calls(); len(calls) != 1 || calls[0].Sub(began) > within {
					t.Errorf("reverted at %v, began at %s", calls, began)
				}
			})
		})
	}
}

// A record that a revert has changed is stored before the next call relies on it. What is stored has microseconds.
func TestChangedRecordIsStoredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &stubborn{answers: []answer{step, done}, change: "changed"}
		f := recordedFor(t, "redis-0")
		f.Status.Targets[0].IntendedAt = new(metav1.NewMicroTime(time.Now().Add(1234 * time.Nanosecond)))
		v := adopted(t.Context(), t, f, injector)
		v.of.leads.Store(true)
		v.ask()
		time.Sleep(time.Minute)
		if n := len(injector.calls()); n != 1 {
			t.Fatalf("%d calls before the record was stored", n)
		}
		p, _ := v.progress()
		p.into(&f.Status)
		text, err := json.Marshal(f.Status)
		stored := v1alpha1.RedisFaultStatus{}
		if err := errors.Join(err, json.Unmarshal(text, &stored)); err != nil {
			t.Fatal(err)
		}
		v.catchUp(&stored)
		synctest.Wait()
		if n := len(injector.calls()); n != 2 {
			t.Errorf("%d calls after it was stored", n)
		}
	})
}

// A process that does not lead has no reconcile that would store a changed record: the revert does so itself, and goes on.
func TestChangedRecordIsStoredWithoutLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		injector := &stubborn{answers: []answer{step, step, done}, change: "changed"}
		f := recordedFor(t, "redis-0")
		all := NewReverters(nil)
		defer all.Close()
		live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(f).WithObjects(f.DeepCopy()).Build()
		v := all.adopt(t.Context(), f, injector.Traits(), &means{live: live, statuses: live.Status(), build: func(context.Context) (contract.Injector, error) { return injector, nil }})
		v.ask()
		time.Sleep(time.Minute)
		if calls := injector.calls(); len(calls) != 3 || calls[1].Sub(began) > revertEvery {
			t.Errorf("reverted at %v", calls)
		}
		stored := &v1alpha1.RedisFault{}
		if err := live.Get(t.Context(), v.key, stored); err != nil || stored.Status.Targets[0].Revert.Data != "changed" || stored.Status.RevertingSince == nil {
			t.Errorf("stored: %v, %+v", err, stored.Status)
		}
	})
}

// A server refuses the login of the injection, as the password was changed: the next attempt reads the Secrets, and so on in turn.
func TestRevertWithTheNewPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := &stubborn{answers: []answer{{err: errors.New("WRONGPASS invalid username-password pair")}}}
		right := &stubborn{answers: []answer{refusal, done}}
		f := recordedFor(t, "redis-0")
		v := adopted(t.Context(), t, f, right)
		v.learn(&scope{fault: f, injector: wrong}, "redis-0")
		v.ask()
		time.Sleep(time.Minute)
		if p, _ := v.progress(); p.revertedAt == nil || len(wrong.calls()) != 1 || len(right.calls()) != 2 {
			t.Errorf("%d and %d calls: %+v", len(wrong.calls()), len(right.calls()), p)
		}
	})
}

// Nothing is injected once the revert has begun, and an injection that hangs is cancelled.
func TestNothingIsInjectedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := adopted(t.Context(), t, recordedFor(t, "redis-0"), &stubborn{answers: []answer{done}})
		time.AfterFunc(3*time.Second, v.ask)
		began := time.Now()
		if !v.during(t.Context(), func(ctx context.Context) { <-ctx.Done() }) || time.Since(began) != 3*time.Second {
			t.Errorf("the injection ended after %s", time.Since(began))
		}
		if v.during(t.Context(), func(context.Context) { t.Error("injected") }) {
			t.Error("an injection after the begin of the revert")
		}
	})
}

// A revert is abandoned 40 s after the deletion of the object, or its last step, a step that does not fail after five minutes, all of them after half an hour;
// without a deletion after a day of errors. This process has tried it.
func TestRevertIsAbandoned(t *testing.T) {
	const step = 5 * time.Minute
	for _, tc := range []struct {
		name         string
		deleted      bool
		tried        bool
		attempts     int32
		after        time.Duration
		wantAbandons bool
		underway     bool
		moved        time.Duration
	}{
		{name: "errors for a minute", tried: true, attempts: 60, after: time.Minute},
		{name: "errors for a day", tried: true, attempts: 60, after: lifecycle.RevertLimit + 1, wantAbandons: true},
		{name: "steps for a day, then an error", tried: true, attempts: 1, after: lifecycle.RevertLimit + 1},
		{name: "deleted", deleted: true, tried: true, attempts: 60, after: lifecycle.RevertPatience},
		{name: "deleted, and errors for too long", deleted: true, tried: true, attempts: 60, after: lifecycle.RevertPatience + 1, wantAbandons: true},
		{name: "deleted, and errors since a step", deleted: true, tried: true, attempts: 6, after: 10 * time.Minute, moved: 10*time.Minute - lifecycle.RevertPatience},
		{name: "deleted, and errors for too long since a step", deleted: true, tried: true, attempts: 60, after: 10 * time.Minute, moved: 10*time.Minute - lifecycle.RevertPatience - 1, wantAbandons: true},
		{name: "deleted, and a step", deleted: true, tried: true, underway: true, after: step},
		{name: "deleted, and a step for too long", deleted: true, tried: true, underway: true, after: step + 1, wantAbandons: true},
		{name: "deleted, and steps", deleted: true, tried: true, underway: true, after: lifecycle.DeletedLimit, moved: lifecycle.DeletedLimit - time.Second},
		{name: "deleted, and steps for too long", deleted: true, tried: true, underway: true, after: lifecycle.DeletedLimit + 1, moved: lifecycle.DeletedLimit, wantAbandons: true},
		{name: "a new process", deleted: true, attempts: 60, after: time.Hour},
	} {
		o := lifecycle.Fault{Reverting: true, Step: step, Deleting: tc.deleted, RevertTried: tc.tried, RevertSince: time.Unix(0, 0)}
		if got := o.Abandons(lifecycle.Pending{Attempts: int(tc.attempts), Underway: tc.underway, Moved: time.Unix(0, 0).Add(tc.moved)}, time.Unix(0, 0).Add(tc.after)); got != tc.wantAbandons {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		injector := &stubborn{answers: []answer{refusal}}
		v := adopted(t.Context(), t, recordedFor(t, "redis-0", "redis-1"), injector)
		v.ask()
		time.Sleep(time.Second)
		v.abandon(func(t *v1alpha1.FaultTarget) bool { return t.Pod == "redis-0" }, injector.ManualRevertCommand)
		if p, tried := v.progress(); !tried || !p.targets[0].RevertAbandoned || p.targets[0].ManualRevertCommand != "do this" || p.targets[1].RevertAbandoned || p.revertedAt != nil {
			t.Errorf("%+v", p)
		}
		v.abandon(func(*v1alpha1.FaultTarget) bool { return true }, injector.ManualRevertCommand)
		if p, _ := v.progress(); p.revertedAt == nil {
			t.Errorf("%+v", p)
		}
		time.Sleep(time.Minute)
		before := len(injector.calls())
		time.Sleep(time.Hour)
		if n := len(injector.calls()); n != before {
			t.Errorf("%d calls after the revert was abandoned", n-before)
		}
	})
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
	synctest.Test(t, func(t *testing.T) {
		injector := &apart{stubborn: stubborn{traits: contract.Traits{Separate: true}}}
		injector.together.Add(12)
		v := adopted(t.Context(), t, recordedFor(t, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"), injector)
		v.ask()
		synctest.Wait()
		if p, _ := v.progress(); p.revertedAt == nil {
			t.Errorf("%+v", p)
		}
	})
}

// Every action on a target is logged with the type of the fault and the target; a retry is logged at V(1), with its cause.
func TestFaultDecisionsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		logger := funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, args)
		}, funcr.Options{Verbosity: 1})
		ctx := log.IntoContext(t.Context(), logger)
		f := recordedFor(t, "redis-0", "redis-1")
		f.Spec.Action.Type = v1alpha1.FaultHang
		injector := &stubborn{answers: []answer{{err: errors.New("connection refused")}, {err: errors.New("connection refused")}, done}}
		v := adopted(ctx, t, f, injector)
		s := &scope{fault: f, injector: injector}
		f.Status.Targets[0].InjectedAt = nil
		s.markInjected(ctx, &f.Status.Targets[0], injection{at: metav1.NewMicroTime(time.Now())})
		v.ask()
		synctest.Wait()
		v.abandon(func(t *v1alpha1.FaultTarget) bool { return t.Pod == "redis-1" }, injector.ManualRevertCommand)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(lines, "\n")
		for _, want := range []string{`"level"=0 "msg"="Injected"`, `"level"=1 "msg"="Retrying to revert"`, `"cause"="connection refused"`, `"level"=0 "msg"="Abandoned the revert"`, `"level"=0 "msg"="Reverted"`} {
			if !strings.Contains(text, want) {
				t.Errorf("no line has %s:\n%s", want, text)
			}
		}
		for _, line := range lines {
			if !strings.Contains(line, `"faultType"="Hang"`) || !strings.Contains(line, `"target"="redis-`) {
				t.Errorf("the line names no type or no target: %s", line)
			}
		}
	})
}

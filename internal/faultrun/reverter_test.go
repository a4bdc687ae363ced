package faultrun

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
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// adopted starts the reverter of a fault that this process has not injected. stored is what the API server has under
// its name; nil = the fault.
func adopted(ctx context.Context, t *testing.T, f, stored *v1alpha1.RedisFault, injector contract.Injector) *Reverter {
	t.Helper()
	if stored == nil {
		stored = f
	}
	live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(stored).
		WithObjects(stored.DeepCopy()).Build()
	term := NewRegistry(nil).NewTerm()
	t.Cleanup(term.Registry.Close)
	return term.Adopt(ctx, f, func() *Means {
		return &Means{
			Traits:   injector.Traits(),
			Live:     live,
			Statuses: live.Status(),
			Build:    func(context.Context) (contract.Injector, error) { return injector, nil },
		}
	})
}

// A revert that fails is tried again and again, less and less often; a success resets that.
func TestRevertIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &reverttest.Reverts{
			Answers: append(slices.Repeat([]reverttest.Answer{reverttest.Refusal}, 20), reverttest.Step, reverttest.Step,
				reverttest.Refusal, reverttest.Done),
		}
		v := adopted(t.Context(), t, reverttest.ActiveFault(t, "redis-0"), nil, injector)
		v.Ask()
		time.Sleep(20 * time.Minute)
		p, _ := v.Progress()
		if p.revertedAt == nil || p.targets[0].RevertedAt == nil || len(injector.Calls()) != 24 {
			t.Fatalf("after %d calls: %+v", len(injector.Calls()), p)
		}
		calls := injector.Calls()
		for i, want := range map[int]time.Duration{
			1: 2 * revertEvery, 2: 4 * revertEvery, 15: revertAtMost, 20: revertAtMost, 21: revertEvery, 22: revertEvery,
			23: 2 * revertEvery,
		} {
			if got := calls[i].Sub(calls[i-1]); got != want {
				t.Errorf("call %d came after %s, want %s", i, got, want)
			}
		}
	})
}

// What a revert meets does not replace the reason why the injection was incomplete. Each step of it is an instant from
// which its patience counts.
func TestErrorsOfInjectionAndRevert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cause = "redis-1 started as a primary"
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Step, reverttest.Refusal, reverttest.Done}}
		f := reverttest.ActiveFault(t, "redis-0")
		f.Status.Targets[0].ActiveAt, f.Status.Targets[0].LastError = nil, cause
		began := time.Now()
		v := adopted(t.Context(), t, f, nil, injector)
		time.Sleep(10 * time.Second)
		if at := v.MovedAt("redis-0"); !at.Equal(began) {
			t.Errorf("moved at %s, this process began at %s", at, began)
		}
		v.Ask()
		for i, want := range []string{reverttest.Step.Progress.Message, reverttest.Refusal.Err.Error(), ""} {
			synctest.Wait()
			p, _ := v.Progress()
			if got := p.targets[0]; got.LastError != cause || got.RevertError != want {
				t.Errorf("after attempt %d: the injection's error is %q, the revert's %q, want %q", i+1, got.LastError,
					got.RevertError, want)
			}
			if at := v.MovedAt("redis-0"); i < 2 && !at.Equal(began.Add(10*time.Second)) {
				t.Errorf("after attempt %d: moved at %s, the step was at %s", i+1, at, began.Add(10*time.Second))
			}
			time.Sleep(2 * revertEvery)
		}
	})
}

// Another operator has completed what this process had injected in part: the fault stays for as long as it was asked
// to.
func TestReverterLeavesWhatAnotherHasCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		injector := &reverttest.Reverts{
			Answers: []reverttest.Answer{reverttest.Done},
			Of:      contract.Traits{Lasts: time.Minute},
		}
		f := halfInjected(t, failed)
		stored, completed := f.DeepCopy(), metav1.NewMicroTime(began.Add(10*time.Second))
		stored.Status.Targets[1].InjectedAt, stored.Status.Targets[1].ActiveAt = &completed, &completed
		v := adopted(t.Context(), t, f, stored, injector)
		v.Learn(&f.Status, injector, "redis-1")
		time.Sleep(time.Hour)
		if calls := injector.Calls(); len(calls) != 2 || calls[0].Sub(began) != 70*time.Second+deadlineSlack {
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
			injector := &reverttest.Reverts{
				Answers: []reverttest.Answer{reverttest.Done},
				Of:      contract.Traits{Lasts: 20 * time.Second},
			}
			f := reverttest.ActiveFault(t, "redis-0")
			stored := f.DeepCopy()
			change(stored)
			adopted(t.Context(), t, f, stored, injector)
			time.Sleep(time.Minute)
			if calls := injector.Calls(); len(calls) > 0 {
				t.Errorf("%s: reverted again, at %v", name, calls)
			}
		})
	}
}

// A revert that goes on in steps changes its record at each. Without an object nothing can be stored: it goes on
// nevertheless, whether this process leads or not.
func TestStepsOfAnOrphan(t *testing.T) {
	for name, leads := range map[string]bool{"leading": true, "not leading": false} {
		synctest.Test(t, func(t *testing.T) {
			injector := &reverttest.Reverts{
				Answers: []reverttest.Answer{reverttest.Step, reverttest.Step, reverttest.Done},
				Change:  "changed",
				Of:      contract.Traits{Lasts: time.Hour},
			}
			f := reverttest.ActiveFault(t, "redis-0")
			heir := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name, UID: "another"}}
			v := adopted(t.Context(), t, f, heir, injector)
			if leads {
				v.by.Load().term.Lead()
				v.session.registry.Gone(v.session.key, "another")
			} else {
				v.Ask() // the API server tells it when it stores the first step
			}
			time.Sleep(time.Minute)
			if len(injector.Calls()) != 3 || v.session.registry.Find(f.UID) != nil {
				t.Errorf("%s: %d calls, left: %v", name, len(injector.Calls()), v.session.registry.Find(f.UID))
			}
		})
	}
}

// The object of a fault was removed by force: what it broke is reverted, and what it prepared, such as a taint. It may
// have been preparing at that moment.
func TestReverterOfARemovedObject(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T) *v1alpha1.RedisFault{
		"active":           func(t *testing.T) *v1alpha1.RedisFault { return reverttest.ActiveFault(t, "redis-0") },
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
				injector := &reverttest.Reverts{
					Answers: []reverttest.Answer{reverttest.Refusal, reverttest.Done},
					Of:      contract.Traits{Lasts: time.Hour},
				}
				v := adopted(t.Context(), t, fault(t), nil, injector)
				v.session.registry.Gone(v.session.key, "")
				time.Sleep(time.Minute)
				if len(injector.Calls()) != 2 || len(v.session.registry.Held()) != 0 {
					t.Errorf("%d calls, %d faults are left", len(injector.Calls()), len(v.session.registry.Held()))
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
				injector := &reverttest.Reverts{
					Answers: []reverttest.Answer{reverttest.Done},
					Of:      contract.Traits{Lasts: 20 * time.Second},
				}
				f := reverttest.ActiveFault(t, "redis-0")
				heir := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name, UID: "another"}}
				v := adopted(t.Context(), t, f, heir, injector)
				began, within := time.Now(), 30*time.Second
				if told {
					within = time.Second
					v.session.registry.Gone(v.session.key, heir.UID)
				}
				time.Sleep(time.Minute)
				if calls := injector.Calls(); len(calls) != 1 || calls[0].Sub(began) > within {
					t.Errorf("reverted at %v, began at %s", calls, began)
				}
			})
		})
	}
}

// A record that a revert has changed is stored before the next call relies on it. What is stored has microseconds.
func TestChangedRecordIsStoredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Step, reverttest.Done}, Change: "changed"}
		f := reverttest.ActiveFault(t, "redis-0")
		f.Status.Targets[0].IntendedAt = new(metav1.NewMicroTime(time.Now().Add(1234 * time.Nanosecond)))
		v := adopted(t.Context(), t, f, nil, injector)
		v.by.Load().term.Lead()
		v.Ask()
		time.Sleep(time.Minute)
		if n := len(injector.Calls()); n != 1 {
			t.Fatalf("%d calls before the record was stored", n)
		}
		p, _ := v.Progress()
		p.Into(&f.Status)
		text, err := json.Marshal(f.Status)
		stored := v1alpha1.RedisFaultStatus{}
		if err := errors.Join(err, json.Unmarshal(text, &stored)); err != nil {
			t.Fatal(err)
		}
		v.CatchUp(&stored)
		synctest.Wait()
		if n := len(injector.Calls()); n != 2 {
			t.Errorf("%d calls after it was stored", n)
		}
	})
}

// A process that does not lead has no reconcile that would store a changed record: the revert does so itself, and goes
// on.
func TestChangedRecordIsStoredWithoutLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		injector := &reverttest.Reverts{
			Answers: []reverttest.Answer{reverttest.Step, reverttest.Step, reverttest.Done},
			Change:  "changed",
		}
		f := reverttest.ActiveFault(t, "redis-0")
		v := adopted(t.Context(), t, f, nil, injector)
		v.Ask()
		time.Sleep(time.Minute)
		if calls := injector.Calls(); len(calls) != 3 || calls[1].Sub(began) > revertEvery {
			t.Errorf("reverted at %v", calls)
		}
		stored := &v1alpha1.RedisFault{}
		if err := v.by.Load().Live.Get(t.Context(), v.session.key, stored); err != nil ||
			stored.Status.Targets[0].Revert.Data != "changed" || stored.Status.RevertingSince == nil {
			t.Errorf("stored: %v, %+v", err, stored.Status)
		}
	})
}

// A server refuses the login of the injection, as the password was changed: the next attempt reads the Secrets, and so
// on in turn.
func TestRevertWithTheNewPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrong := &reverttest.Reverts{
			Answers: []reverttest.Answer{{Err: errors.New("WRONGPASS invalid username-password pair")}},
		}
		right := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal, reverttest.Done}}
		f := reverttest.ActiveFault(t, "redis-0")
		v := adopted(t.Context(), t, f, nil, right)
		v.Learn(&f.Status, wrong, "redis-0")
		v.Ask()
		time.Sleep(time.Minute)
		if p, _ := v.Progress(); p.revertedAt == nil || len(wrong.Calls()) != 1 || len(right.Calls()) != 2 {
			t.Errorf("%d and %d calls: %+v", len(wrong.Calls()), len(right.Calls()), p)
		}
	})
}

// Nothing is injected once the revert has begun, and an injection that hangs is cancelled.
func TestNothingIsInjectedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := adopted(t.Context(), t, reverttest.ActiveFault(t,
			"redis-0"), nil, &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}})
		time.AfterFunc(3*time.Second, v.Ask)
		began := time.Now()
		if !v.During(t.Context(), func(ctx context.Context) { <-ctx.Done() }) || time.Since(began) != 3*time.Second {
			t.Errorf("the injection ended after %s", time.Since(began))
		}
		if v.During(t.Context(), func(context.Context) { t.Error("injected") }) {
			t.Error("an injection after the begin of the revert")
		}
	})
}

// apart is an injector whose reverts wait until all of them have begun.
type apart struct {
	reverttest.Reverts
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
		injector := &apart{Reverts: reverttest.Reverts{Of: contract.Traits{Separate: true}}}
		injector.together.Add(12)
		v := adopted(t.Context(), t, reverttest.ActiveFault(t, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"),
			nil, injector)
		v.Ask()
		synctest.Wait()
		if p, _ := v.Progress(); p.revertedAt == nil {
			t.Errorf("%+v", p)
		}
	})
}

// Every action on a target is logged with the type of the fault and the target; a retry is logged at V(1), with its
// cause.
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
		f := reverttest.ActiveFault(t, "redis-0", "redis-1")
		f.Spec.Action.Type = v1alpha1.FaultHang
		injector := &reverttest.Reverts{
			Answers: []reverttest.Answer{
				{Err: errors.New("connection refused")},
				{Err: errors.New("connection refused")},
				reverttest.Done,
			},
		}
		v := adopted(ctx, t, f, nil, injector)
		v.Ask()
		synctest.Wait()
		v.Abandon(func(t *v1alpha1.FaultTarget) bool { return t.Pod == "redis-1" }, injector.ManualRevertCommand)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(lines, "\n")
		for _, want := range []string{
			`"level"=1 "msg"="Retrying to revert"`, `"cause"="connection refused"`,
			`"level"=0 "msg"="Abandoned the revert"`, `"level"=0 "msg"="Reverted"`,
		} {
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

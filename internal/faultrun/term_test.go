package faultrun

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target/podwatch"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// meansWith are means whose injector is given. The API server has the fault.
func meansWith(t *testing.T, f *v1alpha1.RedisFault, injector contract.Injector) func() *Means {
	t.Helper()
	live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(f).WithObjects(f.DeepCopy()).
		Build()
	return func() *Means {
		return &Means{
			Traits:   injector.Traits(),
			Live:     live,
			Statuses: live.Status(),
			Build:    func(context.Context) (contract.Injector, error) { return injector, nil },
		}
	}
}

// follow follows no pod, and reports whether it still does.
func follow(t *testing.T, term *Term, f *v1alpha1.RedisFault) (follows func() bool) {
	t.Helper()
	api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build()
	pods := term.FollowPods(f, func(ctx context.Context, changed func()) *podwatch.Watch {
		return podwatch.Begin(ctx, api, f.Namespace, labels.Everything(), changed)
	})
	return func() bool {
		synctest.Wait()
		_, ok := pods.Pods()
		return ok
	}
}

var lostWrites = &Stops{Spec: &v1alpha1.StopConditions{LostWrites: new(int64(1))}}

func noRecord() *impact.Live { return nil }

// With the end of the leadership everything ends but reverts, which go on with the clients of the next manager.
func TestTheNextTermGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, f := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0")
		defer sessions.Close()
		first := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal}}
		second := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		before := sessions.NewTerm()
		before.Lead()
		v := before.Adopt(t.Context(), f, meansWith(t, f, first))
		follows := follow(t, before, f)
		before.CheckStops(f, lostWrites, noRecord)
		idle := reverttest.ActiveFault(t)
		idle.UID = "idle"
		before.NoteCall(idle, time.Now())
		if !follows() || !sessions.leads() {
			t.Fatal("the pods are not followed, or nobody leads")
		}
		before.Close()
		if follows() || sessions.leads() || sessions.Find(f.UID).check != nil {
			t.Error("something of the manager that has ended goes on")
		}
		if sessions.Find(idle.UID) != nil {
			t.Error("a session without a revert outlives its manager")
		}
		now := sessions.NewTerm()
		now.Lead()
		if again := now.Adopt(t.Context(), f, meansWith(t, f, second)); again != v {
			t.Error("the next manager has another reverter")
		}
		v.Ask()
		synctest.Wait()
		if len(first.Calls()) != 0 || len(second.Calls()) != 1 {
			t.Errorf("%d calls by the means of the first manager, %d by those of the second", len(first.Calls()),
				len(second.Calls()))
		}
		now.Close()
	})
}

// A manager that has lost the lease may end after the next one has begun, and its reconciles may still be under way.
func TestALateEndHarmsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, f := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0")
		defer sessions.Close()
		first := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal}}
		second := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		before, now := sessions.NewTerm(), sessions.NewTerm()
		before.Lead()
		before.Adopt(t.Context(), f, meansWith(t, f, first))
		old := follow(t, before, f)
		now.Lead()
		v := now.Adopt(t.Context(), f, meansWith(t, f, second))
		follows := follow(t, now, f)
		if old() {
			t.Error("the pods are followed with the clients of the first manager")
		}
		before.StopObserving(f)
		before.Close()
		before.Lead()
		if !sessions.leads() || !follows() {
			t.Errorf("the second manager leads: %t, it follows the pods: %t", sessions.leads(), follows())
		}
		if late := follow(t, before, f); late() {
			t.Error("a manager that has ended follows pods")
		}
		if _, known := before.CheckStops(f, lostWrites, noRecord); known || sessions.Find(f.UID).check != nil {
			t.Error("a manager that has ended evaluates stop conditions")
		}
		if before.Adopt(t.Context(), f, meansWith(t, f, first)) != v {
			t.Error("there is another reverter")
		}
		v.Ask()
		synctest.Wait()
		if len(first.Calls()) != 0 || len(second.Calls()) != 1 {
			t.Errorf("%d calls by the means of the first manager, %d by those of the second", len(first.Calls()),
				len(second.Calls()))
		}
		if now.Close(); sessions.leads() {
			t.Error("nobody leads any more")
		}
	})
}

// A check that the clients of an earlier manager have made says nothing: they may have had no API server.
func TestChecksEndWithTheirTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, f := NewRegistry(nil), reverttest.ActiveFault(t)
		defer sessions.Close()
		before, now := sessions.NewTerm(), sessions.NewTerm()
		before.CheckStops(f, lostWrites, noRecord)
		time.Sleep(ledgerReadWithin + time.Second)
		if _, known := now.CheckStops(f, lostWrites, noRecord); known {
			t.Error("the next manager takes the result of the one before")
		}
		time.Sleep(ledgerReadWithin + time.Second)
		if found, known := now.CheckStops(f, lostWrites, noRecord); !known || found == nil {
			t.Errorf("its own check: %v, known %t", found, known)
		}
		now.Close()
		before.Close()
	})
}

// Both controllers may adopt a fault at once.
func TestAFaultHasOneReverter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, f := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0")
		defer sessions.Close()
		term, injector := sessions.NewTerm(), &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		found := make([]*Reverter, 8)
		var all sync.WaitGroup
		for i := range found {
			means := meansWith(t, f, injector)
			all.Go(func() { found[i] = term.Adopt(t.Context(), f, means) })
		}
		all.Wait()
		for _, v := range found {
			if v != found[0] || v.over.Err() != nil {
				t.Errorf("%p and %p, ended: %v", v, found[0], v.over.Err())
			}
		}
	})
}

// Nothing is injected if nobody here would revert it: another operator has done so already, or this process ends.
func TestNothingIsInjectedThatNobodyReverts(t *testing.T) {
	for name, end := range map[string]func(*Term, *v1alpha1.RedisFault){
		"its session is over": func(term *Term, f *v1alpha1.RedisFault) { term.End(f.UID) },
		"the process ends":    func(term *Term, _ *v1alpha1.RedisFault) { term.Registry.Close() },
		"the record was dropped": func(term *Term, f *v1alpha1.RedisFault) {
			term.DropReverter(f)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			sessions, f := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0")
			defer sessions.Close()
			term := sessions.NewTerm()
			means := meansWith(t, f, &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}})
			v := term.Adopt(t.Context(), f, means)
			end(term, f)
			if v.During(t.Context(), func(context.Context) {}) {
				t.Errorf("%s: injected", name)
			}
			if name == "the process ends" && term.Adopt(t.Context(), f, means).During(t.Context(), func(context.Context) {}) {
				t.Errorf("%s: a late reconcile has injected", name)
			}
		})
	}
}

// The reverter of an object that was removed ends its own session, not one that a late reconcile has begun meanwhile.
func TestAnOrphanEndsItsOwnSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, f := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0")
		defer sessions.Close()
		term, injector := sessions.NewTerm(), &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		term.Adopt(t.Context(), f, meansWith(t, f, injector))
		old := sessions.Find(f.UID)
		sessions.remove(old)
		term.Adopt(t.Context(), f, meansWith(t, f, injector))
		if sessions.remove(old); sessions.Find(f.UID) == nil {
			t.Error("the later session has ended")
		}
	})
}

// A stop condition may be met while the next target is still injected: why the revert has begun remains.
func TestWhyTheRevertHasBegunRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, f := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0", "redis-1")
		defer sessions.Close()
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal}}
		v := sessions.NewTerm().Adopt(t.Context(), f, meansWith(t, f, injector))
		v.stopFor(t.Context(), BreachOf("spec.stopIf.outage", true, "too long"))
		since := time.Now()
		time.Sleep(time.Second)
		v.Learn(&f.Status, injector, "redis-1")
		p, _ := v.Progress()
		if p.breach == nil || p.revertingSince == nil || !p.revertingSince.Time.Equal(since) {
			t.Errorf("breach %v, reverting since %v, want %s", p.breach, p.revertingSince, since)
		}
	})
}

// While this process could not reach a server, another operator has reverted the fault, and another fault may act by
// now: the next attempt is not made. A process that leads is told by its reconciles.
func TestRetriesLeaveWhatAnotherHasReverted(t *testing.T) {
	for name, leads := range map[string]bool{"another leads": false, "this process leads": true} {
		synctest.Test(t, func(t *testing.T) {
			sessions, f := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0")
			defer sessions.Close()
			injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal, reverttest.Done}}
			term := sessions.NewTerm()
			if leads {
				term.Lead()
			}
			means := meansWith(t, f, injector)()
			v := term.Adopt(t.Context(), f, func() *Means { return means })
			v.Ask()
			synctest.Wait()
			stored := f.DeepCopy()
			stored.Status.RevertedAt = new(metav1.NowMicro())
			if err := means.Statuses.Patch(t.Context(), stored, client.MergeFrom(f)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if calls := len(injector.Calls()); calls != map[bool]int{false: 1, true: 2}[leads] {
				t.Errorf("%s: %d calls", name, calls)
			}
		})
	}
}

// A reconcile of a manager that has ended, or with a stale copy of the fault, ends no reverter of a later record.
func TestStaleCopiesEndNoReverter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions, stale := NewRegistry(nil), reverttest.ActiveFault(t, "redis-0")
		defer sessions.Close()
		time.Sleep(time.Second)
		f := reverttest.ActiveFault(t, "redis-0")
		before, now := sessions.NewTerm(), sessions.NewTerm()
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		v := now.Adopt(t.Context(), f, meansWith(t, f, injector))
		if now.Adopt(t.Context(), stale, meansWith(t, stale, injector)) != v {
			t.Error("a stale copy has another reverter")
		}
		now.DropReverter(stale)
		before.Close()
		before.DropReverter(f)
		if sessions.Find(f.UID).Reverter() != v || v.over.Err() != nil {
			t.Error("the reverter has ended")
		}
		if now.DropReverter(f); sessions.Find(f.UID).Reverter() != nil || v.over.Err() == nil {
			t.Error("it can be dropped")
		}
	})
}

package redisfault

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// The finalizer of a fault is removed by force, whatever this process does for it at that instant: once what it has
// broken is reverted, nothing of it is left, though another object may have its name by then. Both reconcilers see that
// it is gone, in any order.
func TestForcedRemovalLeavesNothing(t *testing.T) {
	begins := map[string]func(t *testing.T, r *Reconciler, s *scope.Fault){
		"its pods are followed": func(t *testing.T, r *Reconciler, s *scope.Fault) {
			r.watchPods(t.Context(), s)
		},
		"its servers are polled": func(t *testing.T, r *Reconciler, s *scope.Fault) {
			r.watchPods(t.Context(), s)
			r.watchServers(s)
		},
		"it waits for something else": func(t *testing.T, r *Reconciler, s *scope.Fault) {
			r.watchPods(t.Context(), s)
			r.journal(s)
		},
		"its stop conditions are evaluated": func(_ *testing.T, r *Reconciler, s *scope.Fault) {
			never := &faultrun.Stops{Spec: &v1alpha1.StopConditions{LostWrites: new(int64(1))}}
			r.Term.CheckStops(s.Fault, never, func() *impact.Live { return nil })
		},
		"its injection is in progress": func(_ *testing.T, r *Reconciler, s *scope.Fault) {
			r.recordCall(s, lifecycle.Decision[lifecycle.FaultAction]{Action: lifecycle.FaultInject}, state.Outcome{})
		},
		"it is injected": func(t *testing.T, r *Reconciler, s *scope.Fault) {
			breaks(t, r, s)
		},
		"it is reverted": func(t *testing.T, r *Reconciler, s *scope.Fault) {
			breaks(t, r, s).Ask()
			synctest.Wait()
		},
		"all of that": func(t *testing.T, r *Reconciler, s *scope.Fault) {
			r.watchPods(t.Context(), s)
			r.watchServers(s)
			r.journal(s)
			r.Term.NoteCall(s.Fault, r.Clock.Now())
			breaks(t, r, s)
		},
	}
	for name, begin := range begins {
		for how, heir := range map[string]bool{"it is gone": false, "another one has its name": true} {
			for first, order := range map[string][]int{
				"the reconciler first": {0, 1},
				"the other first":      {1, 0},
				"the reconciler alone": {0},
				"the other alone":      {1},
			} {
				t.Run(name+", "+how+", "+first, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { forcedRemoval(t, begin, heir, order) })
				})
			}
		}
	}
}

// breaks begins the session's reverter with the injector of the scope.
func breaks(t *testing.T, r *Reconciler, s *scope.Fault) *faultrun.Reverter {
	v := r.reach().ReverterOf(t.Context(), s.Fault)
	v.Learn(&s.Fault.Status, s.Injector, "redis-0")
	return v
}

func forcedRemoval(t *testing.T, begin func(*testing.T, *Reconciler, *scope.Fault), heir bool, order []int) {
	injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Refusal, reverttest.Done}}
	f := reverttest.ActiveFault(t, "redis-0")
	f.Spec.Suspend, f.Spec.Target = true, &v1alpha1.RedisTarget{
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
	}
	stored := f.DeepCopy()
	stored.Status = v1alpha1.RedisFaultStatus{} // Restore begins nothing
	api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(f).WithObjects(stored).Build()
	term := faultrun.NewRegistry(nil).NewTerm()
	defer term.Registry.Close()
	r := &Reconciler{Client: api, APIReader: api, Clock: clock.RealClock{}, Runs: runs.NewRegistry(), Term: term}
	defer r.Close()
	r.Restore(t.Context())
	s := &scope.Fault{
		Fault:    f,
		Before:   f.DeepCopy(),
		Injector: injector,
		Target:   f.Spec.Target,
		Deps:     contract.Deps{Redis: target.Redis{Namespace: "ns", Spec: f.Spec.Target, Live: api}},
	}
	begin(t, r, s)
	if term.Find(f.UID) == nil {
		t.Fatal("nothing has begun")
	}
	if err := api.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	next := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name, UID: "heir"}}
	next.Spec.Suspend = true
	if heir {
		if err := api.Create(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		r.Term.NoteCall(next, time.Now())
	}
	pods := term.Find(f.UID).Pods()
	both := []reconcile.Reconciler{r, Ending{r}}
	for _, i := range order {
		// what the heir lacks is no matter
		_, _ = both[i].Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)})
		synctest.Wait()
		if _, follows := pods.Pods(); follows {
			t.Error("the pods are still followed")
		}
	}
	time.Sleep(time.Minute)
	if left := term.Find(f.UID); left != nil {
		t.Errorf("left: %+v", left)
	}
	if kept := term.Find(next.UID) != nil; kept != heir {
		t.Errorf("the session of the other object is kept: %t", kept)
	}
}

// A reconcile that is under way while the object is removed by force may inject after the other controller has ended
// the session: its own next reconcile reverts that.
func TestALateInjectionIsReverted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		f := reverttest.ActiveFault(t, "redis-0")
		api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build()
		term := faultrun.NewRegistry(nil).NewTerm()
		defer term.Registry.Close()
		r := &Reconciler{Client: api, APIReader: api, Clock: clock.RealClock{}, Runs: runs.NewRegistry(), Term: term}
		r.Restore(t.Context())
		gone := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)}
		for _, one := range []reconcile.Reconciler{Ending{r}, r} {
			if one == reconcile.Reconciler(r) {
				breaks(t, r, &scope.Fault{Fault: f, Injector: injector})
			}
			if _, err := one.Reconcile(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if len(injector.Calls()) != 1 || term.Find(f.UID) != nil {
			t.Errorf("%d reverts, left: %v", len(injector.Calls()), term.Find(f.UID))
		}
	})
}

// No manager of the process runs while an object is removed by force: the next one finds that, and reverts at once what
// this process has broken.
func TestObjectsThatVanishBetweenManagers(t *testing.T) {
	for name, heir := range map[string]bool{"it is gone": false, "another one has its name": true} {
		synctest.Test(t, func(t *testing.T) {
			injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
			f := reverttest.ActiveFault(t, "redis-0")
			builder := fake.NewClientBuilder().WithScheme(apitest.Scheme(t))
			if heir {
				builder.WithObjects(&v1alpha1.RedisFault{
					ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name, UID: "heir"},
					Spec:       v1alpha1.RedisFaultSpec{Suspend: true},
				})
			}
			api := builder.Build()
			sessions := faultrun.NewRegistry(nil)
			defer sessions.Close()
			manager := func() *Reconciler {
				return &Reconciler{
					Client:    api,
					APIReader: api,
					Clock:     clock.RealClock{},
					Runs:      runs.NewRegistry(),
					Term:      sessions.NewTerm(),
				}
			}
			before := manager()
			breaks(t, before, &scope.Fault{Fault: f, Injector: injector})
			before.Close()
			now := manager()
			defer now.Close()
			now.Restore(t.Context())
			now.ending().Sweep(t.Context())
			synctest.Wait()
			if len(injector.Calls()) != 1 || sessions.Find(f.UID) != nil {
				t.Errorf("%s: %d reverts, left: %v", name, len(injector.Calls()), sessions.Find(f.UID))
			}
		})
	}
}

// A cache may be older than what this process has done: what it lacks may exist.
func TestACacheAloneEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		f := reverttest.ActiveFault(t, "redis-0")
		cache := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build()
		live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(f.DeepCopy()).Build()
		term := faultrun.NewRegistry(nil).NewTerm()
		defer term.Registry.Close()
		r := &Reconciler{Client: cache, APIReader: live, Clock: clock.RealClock{}, Runs: runs.NewRegistry(), Term: term}
		r.Restore(t.Context())
		breaks(t, r, &scope.Fault{Fault: f, Injector: injector})
		for _, one := range []reconcile.Reconciler{r, Ending{r}} {
			if _, err := one.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(injector.Calls()) > 0 || term.Find(f.UID) == nil {
			t.Errorf("%d reverts of a fault that exists", len(injector.Calls()))
		}
	})
}

// The API server does not answer when a manager begins: what vanished before that is ended as soon as it does.
func TestVanishedObjectsAreLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		injector := &reverttest.Reverts{Answers: []reverttest.Answer{reverttest.Done}}
		f := reverttest.ActiveFault(t, "redis-0")
		api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build()
		live := interceptor.NewClient(api, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption,
			) error {
				if time.Since(began) < time.Minute {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.Get(ctx, key, o, options...)
			},
		})
		sessions := faultrun.NewRegistry(nil)
		defer sessions.Close()
		r := &Reconciler{
			Client:    api,
			APIReader: live,
			Clock:     clock.RealClock{},
			Runs:      runs.NewRegistry(),
			Term:      sessions.NewTerm(),
		}
		breaks(t, r, &scope.Fault{Fault: f, Injector: injector})
		r.Restore(t.Context())
		r.ending().Sweep(t.Context())
		synctest.Wait()
		if took := time.Since(began); len(injector.Calls()) != 1 || sessions.Find(f.UID) != nil || took > 3*time.Minute {
			t.Errorf("after %s: %d reverts, left: %v", took, len(injector.Calls()), sessions.Find(f.UID))
		}
	})
}

// Another operator has finished and released a fault that this process had begun: nothing is held of it any more.
func TestReleasedFaultsAreNotHeld(t *testing.T) {
	f := reverttest.ActiveFault(t, "redis-0")
	meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{
		Type:   v1alpha1.ConditionComplete,
		Status: metav1.ConditionTrue,
		Reason: v1alpha1.ConditionComplete,
	})
	api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(f).WithObjects(f).Build()
	term := faultrun.NewRegistry(nil).NewTerm()
	defer term.Registry.Close()
	r := &Reconciler{Client: api, APIReader: api, Clock: clock.RealClock{}, Runs: runs.NewRegistry(), Term: term}
	term.NoteCall(f, time.Now())
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f)}); err != nil {
		t.Fatal(err)
	}
	if term.Find(f.UID) != nil {
		t.Error("the session has not ended")
	}
}

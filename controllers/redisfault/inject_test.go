package redisfault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// stepwise is an injection of several calls, each with its answer.
type stepwise struct {
	contract.Injector
	answers []contract.Progress
	kept    []string
	refuse  error
}

func (*stepwise) Traits() contract.Traits { return contract.Traits{} }

func (*stepwise) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) { return false, nil }

func (s *stepwise) Inject(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer, nil
}

func (s *stepwise) Due(_ context.Context, targets []v1alpha1.FaultTarget) ([]corev1.Pod, error) {
	var due []corev1.Pod
	for _, t := range targets {
		due = append(due, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: t.Pod}})
	}
	return due, nil
}

func (s *stepwise) Keep(_ context.Context, replacement *corev1.Pod) error {
	s.kept = append(s.kept, replacement.Name)
	return s.refuse
}

// t0 is the call that injects: a preparation may take long, and has no effect on clients.
func TestInjectedAtIsTheTimeOfTheInjection(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := testingclock.NewFakePassiveClock(start)
	stored := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hold"}}
	live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(stored).Build()
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{
		Client:    live,
		APIReader: live,
		Clock:     clock,
		Runs:      runs.NewRegistry(),
		Term:      faultrun.NewRegistry(clock).NewTerm(),
	}
	defer r.Term.Registry.Close()
	recorded := metav1.NewMicroTime(start)
	s := &scope.Fault{
		Fault:  stored,
		Before: stored.DeepCopy(),
		Seen:   lifecycle.Fault{Injection: lifecycle.Injection{Attempted: true}},
		Injector: &stepwise{answers: []contract.Progress{
			contract.Preparing("the holder starts"), contract.Preparing("the node is tainted"), contract.Underway("killed"), {},
		}},
	}
	stored.Status.StartTime = &recorded
	stored.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u", IntendedAt: &recorded}}
	for i, want := range []struct {
		progress         string
		injected, active bool
	}{
		{"the holder starts", false, false},
		{"the node is tainted", false, false},
		{"killed", true, false},
		{"", true, true},
	} {
		clock.SetTime(start.Add(time.Duration(i) * time.Second))
		s.Reverter = r.reach().ReverterOf(t.Context(), s.Fault)
		_, _ = r.injectAll(t.Context(), s, func(context.Context, *scope.Fault, ...*v1alpha1.FaultTarget) error { return nil })
		target := &stored.Status.Targets[0]
		if target.Progress != want.progress || (target.InjectedAt != nil) != want.injected ||
			(target.ActiveAt != nil) != want.active {
			t.Errorf("call %d: progress %q, injected %v, active %v", i+1, target.Progress, target.InjectedAt, target.ActiveAt)
		}
		if !want.injected && !target.IntendedAt.Time.Equal(clock.Now()) {
			t.Errorf("call %d: the intent is of %s: an operator that died in the next call would find it", i+1,
				target.IntendedAt)
		}
	}
	if at := stored.Status.InjectedAt; at == nil || !at.Time.Equal(start.Add(2*time.Second)) {
		t.Errorf("t0 is %v, want the third call", at)
	}
}

// The end of a fault cancels the call that tries once more to inject it. Why the last other one has failed is what users
// have to know, and whether that was as the fault is not supported.
func TestCancelledInjectionKeepsTheReason(t *testing.T) {
	r := injecting(t)
	defer r.Term.Registry.Close()
	f := reverttest.ActiveFault(t, "redis-0")
	target := &f.Status.Targets[0]
	target.InjectedAt, target.ActiveAt = nil, nil
	s := &scope.Fault{Fault: f, Before: f.DeepCopy(), Injector: &stepwise{}}
	s.Reverter = r.reach().ReverterOf(t.Context(), f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, tc := range []struct {
		refused      error
		says         string
		notSupported bool
	}{
		{problem.Unsupported("no netem"), "no netem", true},
		{errors.New("redis-0 is no primary any more"), "redis-0 is no primary any more", false},
		{problem.Unsupported("no netem at all"), "no netem at all", true},
		{nil, "no netem at all", true}, // cancelled
	} {
		_, _ = r.injectAll(ctx, s, func(context.Context, *scope.Fault, ...*v1alpha1.FaultTarget) error {
			if tc.refused != nil {
				return tc.refused
			}
			cancel()
			return fmt.Errorf("list pods: %w", ctx.Err())
		})
		if target.LastError != tc.says || target.NotSupported != tc.notSupported || int(target.Attempts) != i+1 {
			t.Errorf("%d attempts: the last error is %q, not supported %t, want %q", target.Attempts, target.LastError,
				target.NotSupported, tc.says)
		}
	}
}

// injecting is a reconciler without other objects. The caller closes its registry, in the bubble of its test.
func injecting(t *testing.T) *Reconciler {
	t.Helper()
	live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build()
	return &Reconciler{
		Client:    live,
		APIReader: live,
		Clock:     clock.RealClock{},
		Runs:      runs.NewRegistry(),
		Term:      faultrun.NewRegistry(nil).NewTerm(),
	}
}

// A target that has lost its role before anything was tried is selected again; after an attempt that may have broken
// it, it is not.
func TestSelectAgainAfterARoleHasMoved(t *testing.T) {
	r := injecting(t)
	defer r.Term.Registry.Close()
	moved := guard.LostRole{
		Problem: &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: "redis-0 was selected as Primary"},
	}
	for name, tc := range map[string]struct {
		err       error
		attempted bool
		want      bool
	}{
		"nothing was tried": {moved, false, true},
		"others are in the way": {
			&guard.Occupied{Problem: &problem.Problem{Message: "RedisFault keep holds redis-1"}, By: []string{"keep"}},
			false,
			true,
		},
		"it was tried":       {moved, true, false},
		"another refusal":    {problem.NoTarget("no server answers"), false, false},
		"the role is as was": {nil, false, false},
	} {
		f := reverttest.ActiveFault(t, "redis-0")
		f.Status.Targets[0].InjectedAt, f.Status.Targets[0].ActiveAt = nil, nil
		s := &scope.Fault{
			Fault:    f,
			Before:   f.DeepCopy(),
			Injector: &stepwise{answers: []contract.Progress{{}}},
			Seen:     lifecycle.Fault{Injection: lifecycle.Injection{Attempted: tc.attempted}},
		}
		s.Reverter = r.reach().ReverterOf(t.Context(), f)
		all, refused := r.injectAll(t.Context(), s, func(context.Context, *scope.Fault, ...*v1alpha1.FaultTarget) error {
			return tc.err
		})
		if again := refused != nil; again != tc.want || all != (tc.err == nil) {
			t.Errorf("%s: active %t, to be selected again %t", name, all, again)
		}
	}
}

// prepared is a fault that needs something beside each target before it can break the first.
type prepared struct {
	stepwise
	waits map[string][]contract.Progress // what a target still waits for, by pod
	fails map[string]error
	hit   []string
}

func (p *prepared) Prepare(_ context.Context, t *v1alpha1.FaultTarget) (contract.Progress, error) {
	left := p.waits[t.Pod]
	if len(left) == 0 {
		return contract.Progress{}, p.fails[t.Pod]
	}
	p.waits[t.Pod] = left[1:]
	return left[0], nil
}

func (p *prepared) Inject(_ context.Context, t *v1alpha1.FaultTarget) (contract.Progress, error) {
	p.hit = append(p.hit, t.Pod)
	return contract.Progress{}, nil
}

// No target is broken before what the fault needs is there on all of them: it would be broken for as long as that takes.
func TestNoTargetIsHitBeforeAllArePrepared(t *testing.T) {
	r := injecting(t)
	defer r.Term.Registry.Close()
	f := reverttest.ActiveFault(t, "redis-0", "redis-1")
	for i := range f.Status.Targets {
		f.Status.Targets[i].InjectedAt, f.Status.Targets[i].ActiveAt = nil, nil
	}
	f.Status.InjectedAt = nil
	starts := contract.Preparing("the container starts")
	injector := &prepared{
		waits: map[string][]contract.Progress{"redis-1": {starts, starts}},
		fails: map[string]error{"redis-1": errors.New("no such image")},
	}
	s := &scope.Fault{Fault: f, Before: f.DeepCopy(), Injector: injector}
	s.Reverter = r.reach().ReverterOf(t.Context(), f)
	inject := func() bool {
		all, _ := r.injectAll(t.Context(), s,
			func(context.Context, *scope.Fault, ...*v1alpha1.FaultTarget) error { return nil })
		return all
	}
	target := &f.Status.Targets[1]
	for range 2 {
		if all := inject(); all || len(injector.hit) > 0 || target.Progress != starts.Message {
			t.Fatalf("hit %v, while it says %q", injector.hit, target.Progress)
		}
	}
	if all := inject(); all || len(injector.hit) > 0 || target.LastError != "no such image" {
		t.Fatalf("hit %v, although the other one has the error %q", injector.hit, target.LastError)
	}
	injector.fails = nil
	if all := inject(); !all || len(injector.hit) != 2 {
		t.Errorf("all %t, hit %v", all, injector.hit)
	}
}

// patient is a fault that waits for targets that may not be hit now.
type patient struct {
	stepwise
	hit []string
}

func (*patient) Traits() contract.Traits { return contract.Traits{Waits: true} }

func (p *patient) Inject(_ context.Context, t *v1alpha1.FaultTarget) (contract.Progress, error) {
	p.hit = append(p.hit, t.Pod)
	return contract.Progress{}, nil
}

// What keeps a target from being hit, and passes, is waited for while the others are hit: it is no error, which would
// end the fault after half a minute.
func TestWaitsForTargets(t *testing.T) {
	wide := problem.TooWide("it would hit the last copy in sync")
	for name, tc := range map[string]struct {
		err   error
		waits bool
	}{
		"a copy that is not back":     {wide, true},
		"another fault":               {&guard.Occupied{Problem: wide, By: []string{"keep"}}, true},
		"the API server does not say": {apierrors.NewInternalError(errors.New("etcd")), true},
		"another role":                {guard.LostRole{Problem: wide}, false},
		"a right that is missing":     {apierrors.NewForbidden(schema.GroupResource{}, "redis-1", nil), false},
		"a namespace that is guarded": {&problem.Problem{Reason: v1alpha1.ReasonProtected, Message: "protected", Lasting: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := injecting(t)
			defer r.Term.Registry.Close()
			f := reverttest.ActiveFault(t, "redis-0", "redis-1", "redis-2")
			for i := range f.Status.Targets {
				f.Status.Targets[i].InjectedAt, f.Status.Targets[i].ActiveAt = nil, nil
			}
			f.Status.InjectedAt = nil
			injector := &patient{}
			s := &scope.Fault{Fault: f, Before: f.DeepCopy(), Injector: injector, Traits: injector.Traits()}
			s.Reverter = r.reach().ReverterOf(t.Context(), f)
			all, refused := r.injectAll(t.Context(), s,
				func(_ context.Context, _ *scope.Fault, hit ...*v1alpha1.FaultTarget) error {
					if hit[0].Pod == "redis-1" {
						return tc.err
					}
					return nil
				})
			held := &f.Status.Targets[1]
			if all || refused != nil || !slices.Equal(injector.hit, []string{"redis-0", "redis-2"}) {
				t.Errorf("all %t, refused %v, hit %v", all, refused, injector.hit)
			}
			if waits := held.Progress == tc.err.Error() && held.LastError == ""; waits != tc.waits || held.InjectedAt != nil {
				t.Errorf("it waits: %t (%q, error %q)", waits, held.Progress, held.LastError)
			}
		})
	}
}

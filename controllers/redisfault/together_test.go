package redisfault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/reverttest"
)

// volley is an injector whose calls take long: one that deletes pods through a busy API server.
type volley struct {
	contract.Injector
	mu      sync.Mutex
	hitAt   map[string][]time.Time // when Inject was called, by pod
	begun   map[string]bool
	fails   map[string]error
	effects map[string]v1alpha1.Effect
}

func (*volley) Traits() contract.Traits {
	return contract.Traits{Silences: true, NewPod: true, Together: true}
}

func (v *volley) Begun(_ context.Context, t *v1alpha1.FaultTarget) (bool, error) {
	time.Sleep(time.Second)
	return v.begun[t.Pod], nil
}

func (v *volley) Inject(_ context.Context, t *v1alpha1.FaultTarget) (contract.Progress, error) {
	v.mu.Lock()
	v.hitAt[t.Pod] = append(v.hitAt[t.Pod], time.Now())
	err := v.fails[t.Pod]
	v.mu.Unlock()
	time.Sleep(2 * time.Second)
	return contract.Progress{}, err
}

func (v *volley) Effect(_ context.Context, t *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	return v.effects[t.Pod], "pod " + t.Pod
}

// spread is the time between the first and the last call of Inject.
func (v *volley) spread() time.Duration {
	var all []time.Time
	for _, times := range v.hitAt {
		all = append(all, times...)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all[len(all)-1].Sub(all[0])
}

const pods = 6

// injectFunc calls injectAll, with a guard that answers so.
type injectFunc func(refuse error) (all bool, refused error)

// inVolley runs a test in virtual time with a recorded fault on six pods, which permits that no copy is left. asked
// are the targets of each question to the guard, which takes as long as a census.
func inVolley(t *testing.T, test func(
	t *testing.T, v *volley, s *scope.Fault, inject injectFunc, asked *[]int,
),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := injecting(t)
		defer r.Term.Registry.Close()
		f := reverttest.ActiveFault(t, "redis-0")
		f.Spec.Action.Type = v1alpha1.FaultPodKill
		f.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowAllCopies}
		intended := metav1.NowMicro()
		f.Status.Targets, f.Status.InjectedAt = nil, nil
		for i := range pods {
			f.Status.Targets = append(f.Status.Targets, v1alpha1.FaultTarget{
				Pod: fmt.Sprint("redis-", i), UID: fmt.Sprint("u", i), IntendedAt: &intended,
			})
		}
		v := &volley{
			hitAt: map[string][]time.Time{}, begun: map[string]bool{}, fails: map[string]error{},
			effects: map[string]v1alpha1.Effect{},
		}
		s := &scope.Fault{Fault: f, Before: f.DeepCopy(), Injector: v, Traits: v.Traits()}
		s.Reverter = r.reach().ReverterOf(t.Context(), f)
		var asked []int
		test(t, v, s, func(refuse error) (bool, error) {
			return r.injectAll(t.Context(), s, func(_ context.Context, _ *scope.Fault, hit ...*v1alpha1.FaultTarget) error {
				asked = append(asked, len(hit))
				time.Sleep(3 * time.Second)
				return refuse
			})
		}, &asked)
	})
}

// With allow: [AllCopies] all pods are deleted within 100 ms of each other, after one check for all of them.
func TestAllTargetsAreHitAtOnce(t *testing.T) {
	inVolley(t, func(t *testing.T, v *volley, s *scope.Fault, inject injectFunc, asked *[]int) {
		all, err := inject(nil)
		if !all || err != nil || len(v.hitAt) != pods || v.spread() > 100*time.Millisecond {
			t.Errorf("%t, %v: %d pods within %s", all, err, len(v.hitAt), v.spread())
		}
		if !slices.Equal(*asked, []int{pods}) {
			t.Errorf("the guard was asked for %v targets, want one question for all", *asked)
		}
		for _, target := range s.Fault.Status.Targets {
			if target.InjectedAt == nil || target.ActiveAt == nil || target.Attempts != 1 ||
				target.InjectedAt.Sub(s.Fault.Status.InjectedAt.Time) > 100*time.Millisecond {
				t.Errorf("%+v", target)
			}
		}
	})
}

// Without that permission the guard judges each by what those before it have left.
func TestOneAfterTheOtherWithoutAllCopies(t *testing.T) {
	inVolley(t, func(t *testing.T, _ *volley, s *scope.Fault, inject injectFunc, asked *[]int) {
		s.Fault.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowDataLoss}
		if all, err := inject(nil); !all || err != nil || !slices.Equal(*asked, slices.Repeat([]int{1}, pods)) {
			t.Errorf("%t, %v: asked for %v", all, err, *asked)
		}
	})
}

// What fails is repeated for those that were not hit alone, without a census of servers that are gone; what was half
// done is said as such.
func TestHalfOfAVolley(t *testing.T) {
	inVolley(t, func(t *testing.T, v *volley, s *scope.Fault, inject injectFunc, asked *[]int) {
		v.fails["redis-4"] = errors.New("the API server is busy")
		if all, err := inject(nil); all || err != nil || s.Fault.Status.Targets[4].InjectedAt != nil {
			t.Errorf("%t, %v: %+v", all, err, s.Fault.Status.Targets[4])
		}
		scope.ObserveRecords(s)
		if want := "5 of 6 pods were deleted: pod redis-4: the API server is busy"; s.Seen.InjectionErr != want {
			t.Errorf("%q, want %q", s.Seen.InjectionErr, want)
		}
		for i := range pods {
			v.effects[fmt.Sprint("redis-", i)] = v1alpha1.EffectConfirmed
		}
		v.effects["redis-4"] = v1alpha1.EffectNotObserved
		effect, text := look(t.Context(), s)
		if effect != v1alpha1.EffectInconclusive || !strings.HasPrefix(text, "5 of 6 pods were deleted: pod redis-0; ") {
			t.Errorf("%s, %q", effect, text)
		}
		delete(v.fails, "redis-4")
		all, err := inject(nil)
		if !all || err != nil || len(v.hitAt["redis-4"]) != 2 || len(v.hitAt["redis-0"]) != 1 {
			t.Errorf("%t, %v: %v", all, err, v.hitAt)
		}
		if !slices.Equal(*asked, []int{pods, 0}) {
			t.Errorf("the guard was asked for %v targets, want all, then for the namespace alone", *asked)
		}
		v.effects["redis-4"] = v1alpha1.EffectConfirmed
		if effect, text := look(t.Context(), s); effect != v1alpha1.EffectConfirmed || strings.Contains(text, "6 pods") {
			t.Errorf("%s, %q", effect, text)
		}
	})
}

// Of a fault that waits, each target that is left is judged again: much may have changed since.
func TestVolleyThatWaits(t *testing.T) {
	inVolley(t, func(t *testing.T, v *volley, s *scope.Fault, inject injectFunc, asked *[]int) {
		s.Traits.Waits = true
		v.fails["redis-4"], v.fails["redis-5"] = errors.New("the API server is busy"), errors.New("the API server is busy")
		if all, err := inject(nil); all || err != nil {
			t.Fatalf("%t, %v", all, err)
		}
		clear(v.fails)
		moved := guard.LostRole{Problem: &problem.Problem{Message: "redis-4 is the primary now"}}
		if all, err := inject(moved); all || err != nil || len(v.hitAt["redis-4"]) != 1 {
			t.Errorf("%t, %v: redis-4 was hit although it is the primary", all, err)
		}
		slices.Sort(*asked)
		if !slices.Equal(*asked, []int{0, 1, 1, pods}) {
			t.Errorf("the guard was asked for %v targets", *asked)
		}
		if all, err := inject(nil); !all || err != nil {
			t.Errorf("%t, %v: %v", all, err, v.hitAt)
		}
	})
}

// An operator that died between two deletions has stored none: the next one finds what it has done, with t0 at the
// intent, and asks the guard for the others.
func TestVolleyOfAnOperatorThatDied(t *testing.T) {
	inVolley(t, func(t *testing.T, v *volley, s *scope.Fault, inject injectFunc, asked *[]int) {
		v.begun["redis-0"], v.begun["redis-3"] = true, true
		all, err := inject(nil)
		if !all || err != nil || !slices.Equal(*asked, []int{pods - 2}) {
			t.Errorf("%t, %v: asked for %v", all, err, *asked)
		}
		for i, target := range s.Fault.Status.Targets {
			atIntent := target.InjectedAt.Time.Equal(target.IntendedAt.Time)
			if want := i == 0 || i == 3; atIntent != want || target.ActiveAt == nil {
				t.Errorf("%s: injected at %s, intended at %s", target.Pod, target.InjectedAt, target.IntendedAt)
			}
		}
	})
}

// What it has begun is not left, whatever the guard says of the others now.
func TestRefusedVolleyOfAnOperatorThatDied(t *testing.T) {
	inVolley(t, func(t *testing.T, v *volley, s *scope.Fault, inject injectFunc, _ *[]int) {
		v.begun["redis-3"] = true
		all, refused := inject(guard.LostRole{Problem: &problem.Problem{Message: "redis-0 is a replica now"}})
		if all || refused != nil || s.Fault.Status.Targets[3].InjectedAt == nil ||
			s.Fault.Status.Targets[0].InjectedAt != nil || s.Fault.Status.Targets[0].LastError == "" {
			t.Errorf("%t, %v: %+v", all, refused, s.Fault.Status.Targets)
		}
	})
}

// A refusal keeps all from being hit. One that may pass leaves no trace of an attempt.
func TestRefusedVolley(t *testing.T) {
	for _, tc := range []struct {
		err  error
		back bool // the fault steps back
	}{
		{guard.LostRole{Problem: &problem.Problem{Message: "redis-0 is a replica now"}}, true},
		{errors.New("the namespace is protected"), false},
	} {
		inVolley(t, func(t *testing.T, v *volley, s *scope.Fault, inject injectFunc, _ *[]int) {
			all, refused := inject(tc.err)
			if all || (refused != nil) != tc.back || len(v.hitAt) != 0 {
				t.Errorf("%v: %t, %v, %d were hit", tc.err, all, refused, len(v.hitAt))
			}
			for _, target := range s.Fault.Status.Targets {
				if (target.Attempts == 0) != tc.back || target.InjectedAt != nil {
					t.Errorf("%v: %+v", tc.err, target)
				}
			}
		})
	}
}

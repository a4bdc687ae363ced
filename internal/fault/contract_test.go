package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
)

// run is one kind of fault on the primary of a stage, with the record as the controller stored it.
type run struct {
	*stage
	kind
	hit *v1alpha1.FaultTarget
}

// injector returns a new injector, as after a restart of the operator: without state in memory.
func (r *run) injector() contract.Injector {
	r.t.Helper()
	spec := &v1alpha1.RedisFaultSpec{
		Action: r.action,
		Allow:  []v1alpha1.Allowance{v1alpha1.AllowAllCopies, v1alpha1.AllowTooFewCores},
	}
	if r.mesh {
		spec.Engine = v1alpha1.EngineChaosMesh
	}
	if r.lasts > 0 {
		spec.Duration = &metav1.Duration{Duration: r.lasts}
	}
	injector, err := fault.For(spec, r.deps())
	if err != nil {
		r.t.Fatal(err)
	}
	return injector
}

// begin selects the primary and makes its record.
func begin(t *testing.T, k kind) *run {
	t.Helper()
	r := &run{stage: newContractStage(t), kind: k}
	injector := r.injector()
	spec := &v1alpha1.RedisFaultSpec{
		Action: k.action,
		Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary},
		Allow:  []v1alpha1.Allowance{v1alpha1.AllowAllCopies, v1alpha1.AllowDataLoss},
	}
	if k.action.Type == v1alpha1.FaultReplicaScale {
		spec.Select.Role = v1alpha1.RoleAny
	}
	if k.action.SwitchesPower() { // of all on the node
		spec.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
	}
	found, err := guard.Choose(t.Context(), r.deps().Redis, spec, injector.Traits())
	if err != nil {
		t.Fatal(err)
	}
	r.hit = &found[0]
	before := r.shows()
	if err := injector.Preflight(t.Context(), r.hit); err != nil {
		t.Fatalf("preflight: %v", err)
	}
	if after := r.shows(); after != before || r.broken() != "" {
		t.Errorf("the preflight changed something:\n%s\nbefore:\n%s\nbroken: %s", after, before, r.broken())
	}
	if (r.hit.Revert == nil) != k.unrecorded {
		t.Errorf("record %+v", r.hit.Revert)
	}
	r.hit.IntendedAt = microTime(time.Now())
	return r
}

// stored replaces the record by what the next process would read.
func (r *run) stored() {
	r.t.Helper()
	text, err := json.Marshal(r.hit)
	if err != nil {
		r.t.Fatal(err)
	}
	r.hit = &v1alpha1.FaultTarget{}
	if err := json.Unmarshal(text, r.hit); err != nil {
		r.t.Fatal(err)
	}
}

// until calls a step until it is complete, each time with a new injector that has only the record.
func (r *run) until(what string, step func(contract.Injector) (contract.Progress, error)) {
	r.t.Helper()
	for range 12 {
		progress, err := step(r.injector())
		if err != nil {
			r.t.Fatalf("%s: %v", what, err)
		}
		r.stored()
		if progress.Stage != contract.StagePreparing && what == "inject" && r.hit.InjectedAt == nil {
			r.hit.InjectedAt = microTime(time.Now())
		}
		r.settle()
		if progress.Complete() {
			return
		}
	}
	r.t.Fatalf("%s is not complete after 12 calls", what)
}

func (r *run) inject() {
	r.t.Helper()
	r.until("inject", func(i contract.Injector) (contract.Progress, error) { return i.Inject(r.t.Context(), r.hit) })
	if r.hit.ActiveAt == nil {
		r.hit.ActiveAt = microTime(time.Now())
	}
}

func (r *run) revert() {
	r.t.Helper()
	r.until("revert", func(i contract.Injector) (contract.Progress, error) { return i.Revert(r.t.Context(), r.hit) })
}

func forEachKind(t *testing.T, check func(t *testing.T, r *run)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { check(t, begin(t, k)) })
		})
	}
}

// A second injection, after an operator crashed before it stored the first one, changes nothing more. One or two
// reverts restore the previous state.
func TestContractInjectAndRevertTwice(t *testing.T) {
	forEachKind(t, func(t *testing.T, r *run) {
		before := r.shows()
		r.inject()
		there, broken := r.shows(), r.broken()
		if there == before && broken == "" {
			t.Error("the injection changed nothing")
		}
		r.inject()
		if again := r.shows(); again != there || r.broken() != broken {
			t.Errorf("injected twice:\n%s\ninstead of\n%s\nbroken: %s instead of %s", again, there, r.broken(), broken)
		}
		r.revert()
		after := r.shows()
		if after != before && !r.stays {
			t.Errorf("reverted:\n%s\nbefore:\n%s", after, before)
		}
		if r.rolls {
			broken = r.broken()
		}
		r.revert()
		if again := r.shows(); again != after || r.broken() != broken {
			t.Errorf("reverted twice:\n%s\ninstead of\n%s\nbroken: %s instead of %s", again, after, r.broken(), broken)
		}
	})
}

// The revert of a fault that was never injected changes nothing.
func TestContractRevertFirst(t *testing.T) {
	forEachKind(t, func(t *testing.T, r *run) {
		before := r.shows()
		if begun, err := r.injector().Begun(t.Context(), r.hit); begun || err != nil {
			t.Errorf("begun before the injection: %v, %v", begun, err)
		}
		r.revert()
		if after := r.shows(); after != before || r.broken() != "" {
			t.Errorf("reverted first:\n%s\nbefore:\n%s\nbroken: %s", after, before, r.broken())
		}
	})
}

// After its context was cancelled an injection changes nothing and returns an error, and no effect is confirmed.
func TestContractCancelled(t *testing.T) {
	forEachKind(t, func(t *testing.T, r *run) {
		before := r.shows()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.injector().Inject(ctx, r.hit); !errors.Is(err, context.Canceled) {
			t.Errorf("inject: %v", err)
		}
		if effect, _ := r.injector().Effect(ctx, r.hit); effect == v1alpha1.EffectConfirmed {
			t.Error("the effect is confirmed after the context was cancelled")
		}
		if after := r.shows(); after != before || r.broken() != "" {
			t.Errorf("cancelled:\n%s\nbefore:\n%s\nbroken: %s", after, before, r.broken())
		}
		r.inject()
	})
}

// A deleted pod, or a replacement with its name, is neither injected nor reverted.
func TestContractTargetGone(t *testing.T) {
	forEachKind(t, func(t *testing.T, r *run) {
		if r.injector().Traits().Apart { // it breaks something else, whatever becomes of the pod
			return
		}
		pod := &corev1.Pod{}
		r.must(r.under.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: r.hit.Pod}, pod))
		r.servers.Remove(addressOfPod(pod))
		r.must(r.under.Delete(t.Context(), pod))
		if _, err := r.injector().Inject(t.Context(), r.hit); err != nil {
			t.Errorf("inject without a pod: %v", err)
		}
		r.settle() // its replacement
		before := r.shows()
		r.inject()
		if after := r.shows(); after != before || r.broken() != "" {
			t.Errorf("the replacement was hit:\n%s\nbefore:\n%s\nbroken: %s", after, before, r.broken())
		}
		r.revert()
		if after := r.shows(); after != before || r.broken() != "" {
			t.Errorf("reverted:\n%s\nbefore:\n%s\nbroken: %s", after, before, r.broken())
		}
	})
}

// If the API server or Redis refuses the injection, the result is an error.
func TestContractRefused(t *testing.T) {
	forEachKind(t, func(t *testing.T, r *run) {
		before := r.shows()
		r.refuse = apierrors.NewForbidden(corev1.Resource("pods"), "redis-0", errors.New("a webhook says no"))
		r.servers.refuse(redis.Error("ERR not now"))
		progress, err := r.injector().Inject(t.Context(), r.hit)
		if err == nil || !strings.Contains(err.Error(), "a webhook says no") &&
			!strings.Contains(err.Error(), "ERR not now") {
			t.Errorf("inject: %+v, %v", progress, err)
		}
		if after := r.shows(); after != before || r.broken() != "" {
			t.Errorf("refused:\n%s\nbefore:\n%s\nbroken: %s", after, before, r.broken())
		}
		r.refuse = nil
		r.servers.refuse(nil)
		r.inject()
	})
}

// With a record that this operator cannot read, nothing is injected and nothing reverted.
func TestContractUnreadableRecord(t *testing.T) {
	for name, spoil := range map[string]func(*v1alpha1.RevertRecord){
		"a later version": func(r *v1alpha1.RevertRecord) { r.Version++ },
		"no JSON":         func(r *v1alpha1.RevertRecord) { r.Data = "{" },
		"another kind's":  func(r *v1alpha1.RevertRecord) { r.Data = `{"no such member":1}` },
	} {
		forEachKind(t, func(t *testing.T, r *run) {
			if r.unrecorded {
				return
			}
			before := r.shows()
			spoil(r.hit.Revert)
			if _, err := r.injector().Inject(t.Context(), r.hit); err == nil ||
				!strings.Contains(err.Error(), "status.targets[].revert") {
				t.Errorf("%s: inject: %v", name, err)
			}
			if r.injector().Traits().Lasts > 0 && r.name != "PodKill that lasts" { // it has nothing to revert
				if _, err := r.injector().Revert(t.Context(), r.hit); err == nil ||
					!strings.Contains(err.Error(), "status.targets[].revert") {
					t.Errorf("%s: revert: %v", name, err)
				}
			}
			if effect, _ := r.injector().Effect(t.Context(), r.hit); effect == v1alpha1.EffectConfirmed {
				t.Errorf("%s: the effect is confirmed", name)
			}
			if after := r.shows(); after != before || r.broken() != "" {
				t.Errorf("%s:\n%s\nbefore:\n%s\nbroken: %s", name, after, before, r.broken())
			}
		})
	}
}

// An unknown type is a Problem of the spec.
func TestUnknownType(t *testing.T) {
	_, err := fault.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: "Meteor"}}, contract.Deps{})
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || !p.Lasting || p.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(p.Message, "Meteor") {
		t.Errorf("%v", err)
	}
}

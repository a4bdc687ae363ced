package fault_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/fault/contract"
)

// third is what somebody else sets while a fault lasts: neither as it was before nor as the fault has it.
type third struct {
	set   func(r *run)
	stays func(r *run) bool
	none  string // why there is no such value, instead
}

var (
	itsOwn  = third{none: "what it makes is its own, and only that is removed"}
	itsTime = third{none: "it has no value: it ends"}
)

func settingOf(name, value string) third {
	return third{
		set:   func(r *run) { r.servers.At(r.hit.Address).Set(name, value) },
		stays: func(r *run) bool { return r.servers.At(r.hit.Address).Setting(name) == value },
	}
}

func replicasOf(n int32) third {
	return third{
		set: func(r *run) {
			set := r.setOf()
			set.Spec.Replicas = &n
			r.must(r.under.Update(context.Background(), set))
		},
		stays: func(r *run) bool { return *r.setOf().Spec.Replicas == n },
	}
}

func scaledTo(n int32) third {
	return third{
		set: func(r *run) {
			deployment := r.operator()
			deployment.Spec.Replicas = &n
			r.must(r.under.Update(context.Background(), deployment))
		},
		stays: func(r *run) bool { return *r.operator().Spec.Replicas == n },
	}
}

func cpuOf(limit string) third {
	return third{
		set: func(r *run) {
			pod := r.podOf()
			pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse(limit)
			r.must(r.under.Update(context.Background(), pod))
		},
		stays: func(r *run) bool { return r.podOf().Spec.Containers[0].Resources.Limits.Cpu().String() == limit },
	}
}

func priorityOf(class string) third {
	return third{
		set: func(r *run) {
			set := r.setOf()
			set.Spec.Template.Spec.PriorityClassName = class
			r.must(r.under.Update(context.Background(), set))
		},
		stays: func(r *run) bool { return r.setOf().Spec.Template.Spec.PriorityClassName == class },
	}
}

func (r *run) podOf() *corev1.Pod {
	r.t.Helper()
	pod := &corev1.Pod{}
	r.must(r.under.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: r.hit.Pod}, pod))
	return pod
}

func (r *run) setOf() *appsv1.StatefulSet {
	r.t.Helper()
	set := &appsv1.StatefulSet{}
	r.must(r.under.Get(context.Background(), client.ObjectKey{Namespace: shop, Name: "redis"}, set))
	return set
}

// What somebody else has set meanwhile is left, and said: by an error where the fault cannot be reverted beside it,
// else by a warning.
func TestContractLeavesWhatSomebodyElseHasSet(t *testing.T) {
	forEachKind(t, func(t *testing.T, r *run) {
		if r.lasts == 0 || r.third.none != "" {
			return
		}
		if r.third.set == nil {
			t.Fatal("it lasts, and kinds does not say what somebody else sets meanwhile")
		}
		r.inject()
		r.third.set(r)
		r.settle()
		said := r.revertsTo()
		if !r.third.stays(r) {
			t.Errorf("what somebody else has set did not stay:\n%s", r.shows())
		}
		if !strings.Contains(said, "somebody else") {
			t.Errorf("it says %q", said)
		}
	})
}

// revertsTo reverts until that is complete or fails, and returns the error or the warnings.
func (r *run) revertsTo() string {
	r.t.Helper()
	for range 12 {
		progress, err := r.injector().Revert(r.t.Context(), r.hit)
		if err != nil {
			return err.Error()
		}
		r.stored()
		r.settle()
		if progress.Complete() {
			warner, is := r.injector().(contract.Warner)
			if !is {
				return ""
			}
			return strings.Join(warner.Warnings(r.hit), "; ")
		}
	}
	r.t.Fatal("the revert is not complete after 12 calls")
	return ""
}

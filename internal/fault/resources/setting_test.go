package resources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func (r *resizable) settingOf(cpu string) contract.Injector {
	r.t.Helper()
	spec := &v1alpha1.RedisFaultSpec{
		Setting: true,
		Action: v1alpha1.Action{
			Type:      v1alpha1.FaultResources,
			Resources: &v1alpha1.Resources{CPU: new(resource.MustParse(cpu))},
		},
	}
	injector, err := Kinds.For(spec, r.deps)
	if err != nil {
		r.t.Fatal(err)
	}
	return injector
}

// A load can run with the limits that a pod has already; nothing is resized then, and nothing restored.
func TestResourcesOfASettingWithoutChange(t *testing.T) {
	r := newResizable(t, guaranteed, nil)
	target, injector := r.target(), r.settingOf("1")
	if err := injector.Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if err := faulttest.Called(injector.Inject(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	target.InjectedAt = new(metav1.NewMicroTime(time.Now()))
	faulttest.EffectIs(t, injector, target, v1alpha1.EffectConfirmed, "cpu 1")
	if err := faulttest.Called(injector.Revert(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	if r.patches != 0 {
		t.Errorf("%d patches, want none", r.patches)
	}
}

// A pod that was replaced has the limits of its template: they are those of the setting, or that is lost.
func TestResourcesOfASettingInAReplacedPod(t *testing.T) {
	for cpu, want := range map[string]v1alpha1.Effect{"1": v1alpha1.EffectConfirmed, "500m": v1alpha1.EffectNotObserved} {
		r := newResizable(t, guaranteed, nil)
		target, injector := r.target(), r.settingOf(cpu)
		if err := injector.Preflight(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if err := r.Cluster.Delete(t.Context(), r.current()); err != nil {
			t.Fatal(err)
		}
		r.Pod("redis-0", "u1", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = guaranteed
		})
		faulttest.EffectIs(t, injector, target, want, "replaced")
	}
}

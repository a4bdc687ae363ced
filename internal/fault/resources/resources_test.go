package resources

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// resizable is a pod whose API server accepts resizes, and whose kubelet does what the test scripts.
type resizable struct {
	*faulttest.World
	t       *testing.T
	refuse  error // of every resize
	patches int   // that were applied
	now     time.Time
	deps    contract.Deps
}

func newResizable(t *testing.T, own corev1.ResourceRequirements, change func(*corev1.Pod)) *resizable {
	t.Helper()
	r := &resizable{World: faulttest.NewWorld(t), t: t, now: time.Unix(1_800_000_000, 0)}
	r.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = own
		p.Status.ContainerStatuses[0].Resources = &own
		if change != nil {
			change(p)
		}
	})
	r.Servers.Script("INFO memory", faulttest.Reply("used_memory:50000000\r\nused_memory_rss:60000000\r\n"))
	r.deps = r.World.Deps()
	r.deps.Cluster = interceptor.NewClient(r.Cluster, interceptor.Funcs{SubResourcePatch: r.patch})
	return r
}

// patch is the API server's side: a patch with another UID is invalid.
func (r *resizable) patch(
	ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption,
) error {
	var given client.SubResourcePatchOptions
	given.ApplyOptions(options)
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var head struct {
		Metadata struct{ UID string } `json:"metadata"`
	}
	if err := json.Unmarshal(data, &head); err != nil || sub != "resize" {
		r.t.Errorf("%s: %v", sub, err)
	}
	current := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return err
	}
	switch {
	case r.refuse != nil:
		return r.refuse
	case head.Metadata.UID != string(current.UID):
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, object.GetName(), nil)
	case len(given.DryRun) > 0:
		return nil
	}
	r.patches++
	return c.SubResource(sub).Patch(ctx, object, patch, options...)
}

func (r *resizable) current() *corev1.Pod {
	r.t.Helper()
	pod := &corev1.Pod{}
	if err := r.Cluster.Get(r.t.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis-0"},
		pod); err != nil {
		r.t.Fatal(err)
	}
	return pod
}

// kubelet sets the conditions of a resize; without conditions, it applies the resize.
func (r *resizable) kubelet(conditions ...corev1.PodCondition) {
	r.t.Helper()
	r.Update(r.current(), func(p *corev1.Pod) {
		p.Status.Conditions = conditions
		if len(conditions) == 0 {
			p.Status.ContainerStatuses[0].Resources = p.Spec.Containers[0].Resources.DeepCopy()
		}
	})
}

func (r *resizable) injector(limits map[corev1.ResourceName]string) contract.Injector {
	r.t.Helper()
	want := &v1alpha1.Resources{}
	if text, ok := limits[corev1.ResourceCPU]; ok {
		want.CPU = new(resource.MustParse(text))
	}
	if text, ok := limits[corev1.ResourceMemory]; ok {
		want.Memory = new(resource.MustParse(text))
	}
	injector, err := Kinds.For(
		&v1alpha1.RedisFaultSpec{
			Action:   v1alpha1.Action{Type: v1alpha1.FaultResources, Resources: want},
			Duration: &metav1.Duration{Duration: time.Minute},
		}, r.deps)
	if err != nil {
		r.t.Fatal(err)
	}
	injector.(*resources).now = func() time.Time { return r.now }
	return injector
}

func (r *resizable) target() *v1alpha1.FaultTarget {
	return &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Container: "redis", Node: "node-1", Address: "10.0.0.1:6379"}
}

// shows fails the test unless the container's spec has these resources.
func (r *resizable) shows(want string) {
	r.t.Helper()
	if got := said(r.current().Spec.Containers[0].Resources); got != want {
		r.t.Errorf("the container has %s, want %s", got, want)
	}
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

var guaranteed = corev1.ResourceRequirements{
	Limits:   quantities("cpu", "1", "memory", "256Mi"),
	Requests: quantities("cpu", "1", "memory", "256Mi"),
}

func TestResourcesInjectAndRevert(t *testing.T) {
	for name, c := range map[string]struct {
		own    corev1.ResourceRequirements
		limits map[corev1.ResourceName]string
		during string
	}{
		"cpu of a guaranteed pod": {
			guaranteed,
			map[corev1.ResourceName]string{"cpu": "100m"},
			"cpu 100m, memory 256Mi",
		},
		"both": {
			guaranteed,
			map[corev1.ResourceName]string{"cpu": "500m", "memory": "128Mi"},
			"cpu 500m, memory 128Mi",
		},
		"a request below stays": {
			corev1.ResourceRequirements{Limits: quantities("cpu", "2"), Requests: quantities("cpu", "200m")},
			map[corev1.ResourceName]string{"cpu": "1"},
			"cpu 1 (requested 200m)",
		},
		"a request above is lowered": {
			corev1.ResourceRequirements{Limits: quantities("cpu", "2"), Requests: quantities("cpu", "1")},
			map[corev1.ResourceName]string{"cpu": "500m"},
			"cpu 500m",
		},
		"more than before": {guaranteed, map[corev1.ResourceName]string{"memory": "1Gi"}, "cpu 1, memory 1Gi"},
		"no request where there was no": {
			corev1.ResourceRequirements{Limits: quantities("cpu", "2")},
			map[corev1.ResourceName]string{"cpu": "1"},
			"cpu 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResizable(t, c.own, nil)
			target := r.target()
			if err := r.injector(c.limits).Preflight(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			before := said(c.own)
			r.shows(before)
			faulttest.EffectIs(t, r.injector(c.limits), target, v1alpha1.EffectNotObserved, "still has")
			if begun, err := r.injector(c.limits).Begun(t.Context(), target); begun || err != nil {
				t.Errorf("begun %t %v", begun, err)
			}
			faulttest.InProgress(t, faulttest.Called(r.injector(c.limits).Inject(t.Context(), target)), "is to resize")
			faulttest.InProgress(t, faulttest.Called(r.injector(c.limits).Inject(t.Context(), target)), "has not applied")
			if begun, err := r.injector(c.limits).Begun(t.Context(), target); !begun || err != nil {
				t.Errorf("begun %t %v", begun, err)
			}
			r.shows(c.during)
			faulttest.EffectIs(t, r.injector(c.limits), target, v1alpha1.EffectInconclusive, "has not applied")
			r.kubelet()
			for range 2 {
				if err := faulttest.Called(r.injector(c.limits).Inject(t.Context(), target)); err != nil {
					t.Fatal(err)
				}
			}
			faulttest.EffectIs(t, r.injector(c.limits), target, v1alpha1.EffectConfirmed, "instead of")
			faulttest.InProgress(t, faulttest.Called(r.injector(c.limits).Revert(t.Context(), target)), "is to restore")
			faulttest.InProgress(t, faulttest.Called(r.injector(c.limits).Revert(t.Context(), target)), "has not applied")
			r.shows(before)
			r.kubelet()
			for range 2 {
				if err := faulttest.Called(r.injector(c.limits).Revert(t.Context(), target)); err != nil {
					t.Fatal(err)
				}
			}
			if r.patches != 2 {
				t.Errorf("%d patches, want 2", r.patches)
			}
		})
	}
}

// warns fails the test unless the revert leaves one warning with these words, or none without words.
func (r *resizable) warns(limits map[corev1.ResourceName]string, target *v1alpha1.FaultTarget, words ...string) {
	r.t.Helper()
	got := r.injector(limits).(contract.Warner).Warnings(target)
	if len(got) != min(len(words), 1) {
		r.t.Fatalf("warnings %q, want one with %q", got, words)
	}
	for _, word := range words {
		if !strings.Contains(got[0], word) {
			r.t.Errorf("the warning is %q, without %q", got[0], word)
		}
	}
}

// Somebody else resizes one of two resources: the other one is reverted, and a person is not told to undo that.
func TestResourcesLeavesWhatSomebodyElseHasResized(t *testing.T) {
	for _, left := range []corev1.ResourceName{"cpu", "memory"} {
		t.Run(string(left), func(t *testing.T) {
			r := newResizable(t, guaranteed, nil)
			target, limits := r.target(), map[corev1.ResourceName]string{"cpu": "100m", "memory": "512Mi"}
			if err := r.injector(limits).Preflight(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			faulttest.InProgress(t, faulttest.Called(r.injector(limits).Inject(t.Context(), target)), "is to resize")
			r.kubelet()
			target.InjectedAt = &metav1.MicroTime{Time: r.now}
			pod, other := r.current(), map[corev1.ResourceName]string{"cpu": "3", "memory": "1Gi"}[left]
			own := pod.Spec.Containers[0].Resources
			own.Limits[left], own.Requests[left] = resource.MustParse(other), resource.MustParse(other)
			if err := r.Cluster.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			faulttest.InProgress(t, faulttest.Called(r.injector(limits).Revert(t.Context(), target)), "is to restore")
			want := guaranteed.DeepCopy()
			want.Limits[left], want.Requests[left] = resource.MustParse(other), resource.MustParse(other)
			r.shows(said(*want))
			r.kubelet()
			if err := faulttest.Called(r.injector(limits).Revert(t.Context(), target)); err != nil {
				t.Error(err)
			}
			r.shows(said(*want))
			r.warns(limits, target, "has "+string(left)+" "+other)
			if by := r.injector(limits).ManualRevertCommand(target); strings.Contains(by, `"`+string(left)+`"`) {
				t.Errorf("manual command: %s", by)
			}
		})
	}
}

func TestResourcesKubeletRefuses(t *testing.T) {
	condition := func(kind corev1.PodConditionType, reason, message string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	}
	for name, c := range map[string]struct {
		condition corev1.PodCondition
		about     string
		goesOn    bool
	}{
		"infeasible": {
			condition(corev1.PodResizePending, corev1.PodReasonInfeasible, "Node didn't have enough capacity"),
			"Infeasible): Node didn't have", false,
		},
		"deferred": {
			condition(corev1.PodResizePending, corev1.PodReasonDeferred, "Node didn't have enough resource"),
			"Deferred): Node didn't have", false,
		},
		"error": {
			condition(corev1.PodResizeInProgress, corev1.PodReasonError, "below current usage"),
			"fails to resize pod redis-0 to cpu 100m: below current usage", false,
		},
		"under way": {condition(corev1.PodResizeInProgress, "", ""), "is resizing", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResizable(t, guaranteed, nil)
			target, limits := r.target(), map[corev1.ResourceName]string{"cpu": "100m"}
			if err := r.injector(limits).Preflight(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			faulttest.InProgress(t, faulttest.Called(r.injector(limits).Inject(t.Context(), target)), "is to resize")
			r.kubelet(c.condition)
			err := faulttest.Called(r.injector(limits).Inject(t.Context(), target))
			var steps *faulttest.Pending
			if err == nil || errors.As(err, &steps) != c.goesOn || !strings.Contains(err.Error(), c.about) {
				t.Errorf("%v, want something about %q", err, c.about)
			}
			faulttest.EffectIs(t, r.injector(limits), target, v1alpha1.EffectInconclusive, c.about)
			if got := faulttest.Called(r.injector(limits).Revert(t.Context(), target)); !errors.As(got, &steps) {
				t.Errorf("record for the revert: %v", got)
			}
			r.shows(said(guaranteed))
		})
	}
}

// A condition for an earlier generation of the pod does not apply to this resize.
func TestResourcesOldCondition(t *testing.T) {
	r := newResizable(t, guaranteed, func(p *corev1.Pod) {
		p.Generation = 3
		p.Status.Conditions = []corev1.PodCondition{
			{
				Type:               corev1.PodResizePending,
				Status:             corev1.ConditionTrue,
				ObservedGeneration: 2,
				Reason:             corev1.PodReasonInfeasible,
			},
		}
	})
	target, limits := r.target(), map[corev1.ResourceName]string{"cpu": "100m"}
	if err := r.injector(limits).Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	for _, about := range []string{"is to resize", "has not applied"} {
		faulttest.InProgress(t, faulttest.Called(r.injector(limits).Inject(t.Context(), target)), about)
	}
}

func TestResourcesTimeout(t *testing.T) {
	r := newResizable(t, guaranteed, nil)
	target, limits := r.target(), map[corev1.ResourceName]string{"cpu": "100m"}
	if err := r.injector(limits).Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	faulttest.InProgress(t, faulttest.Called(r.injector(limits).Inject(t.Context(), target)), "is to resize")
	target.InjectedAt = &metav1.MicroTime{Time: r.now}
	r.now = r.now.Add(resizePatience + time.Second)
	var steps *faulttest.Pending
	if err := faulttest.Called(r.injector(limits).Inject(t.Context(), target)); err == nil || errors.As(err, &steps) ||
		!strings.Contains(err.Error(), "has not applied") {
		t.Errorf("without a reaction of the kubelet: %v", err)
	}
	faulttest.InProgress(t, faulttest.Called(r.injector(limits).Revert(t.Context(), target)), "is to restore")
	r.Update(r.current(), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Resources = nil })
	faulttest.InProgress(t, faulttest.Called(r.injector(limits).Revert(t.Context(), target)), "shows no resources")
	r.now = r.now.Add(resizePatience + time.Second)
	if err := faulttest.Called(r.injector(limits).Revert(t.Context(), target)); err == nil || errors.As(err, &steps) {
		t.Errorf("without a reaction of the kubelet: %v", err)
	}
}

// A replaced pod has the resources of its template; a pod that another client resizes is not changed.
func TestResourcesIgnoresOtherPods(t *testing.T) {
	limits := map[corev1.ResourceName]string{"cpu": "100m"}
	begin := func(t *testing.T, injected bool) (*resizable, *v1alpha1.FaultTarget) {
		r := newResizable(t, guaranteed, nil)
		target := r.target()
		if err := r.injector(limits).Preflight(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if injected {
			faulttest.InProgress(t, faulttest.Called(r.injector(limits).Inject(t.Context(), target)), "is to resize")
			r.kubelet()
		}
		return r, target
	}
	untouched := func(t *testing.T, r *resizable, target *v1alpha1.FaultTarget) {
		t.Helper()
		n := r.patches
		for what, do := range map[string]func(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error){
			"inject": r.injector(limits).Inject,
			"revert": r.injector(limits).Revert,
		} {
			if err := faulttest.Called(do(t.Context(), target)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if begun, err := r.injector(limits).Begun(t.Context(), target); !begun || err != nil {
			t.Errorf("begun %t %v", begun, err)
		}
		if r.patches != n {
			t.Error("another pod was resized")
		}
		faulttest.EffectIs(t, r.injector(limits), target, v1alpha1.EffectInconclusive, "gone or replaced")
	}
	t.Run("replaced", func(t *testing.T) {
		r, target := begin(t, true)
		r.Replace(r.current(), "u1")
		untouched(t, r, target)
	})
	t.Run("replaced before", func(t *testing.T) {
		r, target := begin(t, false)
		r.Replace(r.current(), "u1")
		untouched(t, r, target)
	})
	t.Run("deleted", func(t *testing.T) {
		r, target := begin(t, true)
		if err := r.Cluster.Delete(t.Context(), r.current()); err != nil {
			t.Fatal(err)
		}
		untouched(t, r, target)
	})
	t.Run("resized by another client", func(t *testing.T) {
		r, target := begin(t, true)
		target.InjectedAt = &metav1.MicroTime{Time: r.now}
		pod := r.current()
		pod.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("3")
		if err := r.Cluster.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if err := faulttest.Called(r.injector(limits).Inject(t.Context(), target)); err == nil ||
			!strings.Contains(err.Error(), "somebody else") {
			t.Errorf("inject: %v", err)
		}
		n := r.patches
		for range 2 {
			if err := faulttest.Called(r.injector(limits).Revert(t.Context(), target)); err != nil || r.patches != n {
				t.Errorf("revert: %v, %d patches", err, r.patches-n)
			}
		}
		r.warns(limits, target, "container redis of pod redis-0 has cpu 3", "before the fault: cpu 1",
			"by the fault: cpu 100m")
	})
	t.Run("resized by another client before the fault was", func(t *testing.T) {
		r, target := begin(t, false)
		pod := r.current()
		pod.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("3")
		if err := r.Cluster.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if err := faulttest.Called(r.injector(limits).Revert(t.Context(), target)); err != nil || r.patches != 0 {
			t.Errorf("revert: %v, %d patches", err, r.patches)
		}
		r.warns(limits, target)
	})
	t.Run("never resized", func(t *testing.T) {
		r, target := begin(t, false)
		if err := faulttest.Called(r.injector(limits).Revert(t.Context(), target)); err != nil || r.patches != 0 {
			t.Errorf("%v, %d patches", err, r.patches)
		}
	})
	t.Run("manually", func(t *testing.T) {
		r, target := begin(t, true)
		want := `kubectl -n shop patch pod redis-0 --subresource resize --patch ` +
			`'{"spec":{"containers":[{"name":"redis","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}]}}'`
		if got := r.injector(limits).ManualRevertCommand(target); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	})
	t.Run("refused", func(t *testing.T) {
		r, target := begin(t, false)
		r.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "redis-0", errors.New("a webhook says no"))
		if err := faulttest.Called(r.injector(limits).Inject(t.Context(), target)); !apierrors.IsForbidden(err) {
			t.Errorf("%v, want the refusal", err)
		}
		_, err := r.injector(limits).Inject(t.Context(), r.target())
		if _, isProblem := errors.AsType[*problem.Problem](err); err == nil || isProblem {
			t.Errorf("without a record: %v", err)
		}
	})
}

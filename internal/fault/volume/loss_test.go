package volume

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// claimed are a StatefulSet with a template of claims, and the claim data-redis-0 that it has made.
func claimed(uid types.UID) []client.Object {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	return []client.Object{set, claim(uid)}
}

func claim(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: faulttest.Namespace, Name: "data-redis-0", UID: uid,
			Finalizers: []string{"kubernetes.io/pvc-protection"},
		},
	}
}

// mounts has a pod mount a claim.
func mounts(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

func lossOf(t *testing.T, w *faulttest.World) contract.Injector {
	t.Helper()
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultVolumeLoss}}, w.Deps())
	faulttest.Must(t, err)
	return injector
}

func TestVolumeLoss(t *testing.T) {
	w := faulttest.NewWorld(t, claimed("c0")...)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, mounts("data-redis-0"))
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	var order []string
	w.Hooks.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
		var given client.DeleteOptions
		given.ApplyOptions(options)
		order = append(order, o.GetName()+" "+string(*given.Preconditions.UID))
		return c.Delete(ctx, o)
	}
	injector := lossOf(t, w)
	hit := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", RunID: "run-u0", Container: "redis", Copies: []string{"redis-1"}}
	faulttest.Must(t, injector.Preflight(t.Context(), hit))
	if begun, err := injector.Begun(t.Context(), hit); begun || err != nil {
		t.Fatalf("begun %t, %v", begun, err)
	}
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), hit)))
	if got := strings.Join(order, ", "); got != "data-redis-0 c0, redis-0 u0" {
		t.Errorf("deleted %s", got)
	}
	if begun, err := injector.Begun(t.Context(), hit); !begun || err != nil {
		t.Errorf("begun %t, %v", begun, err)
	}
	effect := func(want v1alpha1.Effect, says string) {
		t.Helper()
		if got, why := injector.Effect(t.Context(), hit); got != want || !strings.Contains(why, says) {
			t.Errorf("%s: %s; want %s, %q", got, why, want, says)
		}
	}
	effect(v1alpha1.EffectInconclusive, "claim data-redis-0 (c0) is still being deleted")
	left := claim("")
	faulttest.Must(t, w.Cluster.Get(t.Context(), client.ObjectKeyFromObject(left), left))
	left.Finalizers = nil
	faulttest.Must(t, w.Cluster.Update(t.Context(), left))
	faulttest.Must(t, w.Cluster.Create(t.Context(), claim("c1")))
	w.Servers.Kill("10.0.0.1:6379")
	w.Servers.Start("10.0.0.1:6379", memredis.State{RunID: "run-u2"})
	w.Pod("redis-0", "u2", "10.0.0.1", "", mounts("data-redis-0"))
	effect(v1alpha1.EffectConfirmed, "its former claims are gone (data-redis-0); redis-0 has 0 keys, redis-1 has ")
	// nothing of the replacement is deleted, also by a process that knows nothing of the injection
	order = nil
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), hit)))
	if len(order) > 0 {
		t.Errorf("deleted %s", order)
	}
}

// A pod whose claims nobody would make again is refused.
func TestVolumeLossPreflight(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		says   string
	}{
		"no volume": {
			func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "tmp"}} },
			"has no volume of spec.volumeClaimTemplates of StatefulSet redis",
		},
		"a claim of its own": {mounts("shared"), "has no volume of spec.volumeClaimTemplates of StatefulSet redis"},
		"a Deployment": {func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind = "ReplicaSet"
		}, "does not belong to a StatefulSet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t, claimed("c0")...)
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, tc.change)
			hit := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Container: "redis"}
			problem := faulttest.ProblemOf(t, lossOf(t, w).Preflight(t.Context(), hit))
			if !problem.Lasting || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("%+v", problem)
			}
		})
	}
}

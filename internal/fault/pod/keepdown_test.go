package pod

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// downFor returns a kill that keeps pods down, and its record of redis-0, injected at the given time.
func downFor(w *faulttest.World, lasts time.Duration) (keptDown, *v1alpha1.FaultTarget) {
	w.T.Helper()
	spec := &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}, Duration: &metav1.Duration{Duration: lasts}}
	injector, err := Kinds.For(spec, w.Deps())
	if err != nil {
		w.T.Fatal(err)
	}
	target := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", RunID: "run-u0"}
	if err := injector.Preflight(w.T.Context(), target); err != nil {
		w.T.Fatal(err)
	}
	return injector.(keptDown), target
}

func TestKeepDown(t *testing.T) {
	w := faulttest.NewWorld(t)
	pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	k, target := downFor(w, 12*time.Second)
	if got := k.Traits().Lasts; got != 12*time.Second {
		t.Errorf("it lasts %s", got)
	}
	if err := k.Keep(t.Context(), target); err != nil || len(w.Deleted) > 0 {
		t.Fatalf("before the injection: %v, deleted %v", err, w.Deleted)
	}
	if err := faulttest.Called(k.Inject(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	target.InjectedAt = &metav1.MicroTime{Time: time.Now()}
	for _, uid := range []string{"new-1", "new-2"} {
		w.Replace(pod, uid)
		if effect, why := k.Effect(t.Context(), target); effect != v1alpha1.EffectNotObserved || !strings.Contains(why, "serves") {
			t.Errorf("while %s serves: %s: %s", uid, effect, why)
		}
		if err := k.Keep(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		delete(w.Servers.Servers, "10.0.0.1:6379")
		if effect, why := k.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed {
			t.Errorf("after %s: %s: %s", uid, effect, why)
		}
	}
	if got := strings.Join(w.Deleted, " "); got != "new-1 new-2" {
		t.Errorf("deleted %s; want both replacements, and nothing else", got)
	}
}

// The controller gives each pod a new name: pods created since the injection are replacements, earlier ones are not.
func TestKeepDownInADeployment(t *testing.T) {
	w := faulttest.NewWorld(t)
	injected := time.Now()
	of := func(controller string, created time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID = "ReplicaSet", "rs"
			if controller != "" {
				p.OwnerReferences[0].UID = "other"
			}
			p.CreationTimestamp = metav1.NewTime(created)
		}
	}
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, of("", injected.Add(-time.Hour)))
	w.Pod("redis-old", "old", "10.0.0.2", topology.Replica, of("", injected.Add(-time.Minute)))
	w.Pod("app", "app", "10.0.0.3", "", of("another", injected.Add(time.Second)))
	w.Pod("redis-new", "new", "10.0.0.4", "", of("", injected.Add(time.Second)))
	k, target := downFor(w, time.Minute)
	target.InjectedAt = &metav1.MicroTime{Time: injected}
	if err := k.Keep(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.Deleted, " "); got != "new" {
		t.Errorf("deleted %q, want new", got)
	}
}

func TestKillWithoutDuration(t *testing.T) {
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, contract.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if _, keeps := injector.(contract.Keeper); keeps || injector.Traits().Lasts != 0 {
		t.Error("a kill without a duration lasts")
	}
}

package pod

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// downFor returns a kill that keeps pods down, and its record of redis-0, injected at the given time.
func downFor(w *faulttest.World, lasts time.Duration) (keptDown, *v1alpha1.FaultTarget) {
	w.T.Helper()
	spec := &v1alpha1.RedisFaultSpec{
		Action:   v1alpha1.Action{Type: v1alpha1.FaultPodKill},
		Duration: &metav1.Duration{Duration: lasts},
	}
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

// keepDown deletes what is due.
func keepDown(t *testing.T, k keptDown, targets ...v1alpha1.FaultTarget) {
	t.Helper()
	due, err := k.Due(t.Context(), targets)
	if err != nil {
		t.Fatal(err)
	}
	for i := range due {
		if err := k.Keep(t.Context(), &due[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeepDown(t *testing.T) {
	w := faulttest.NewWorld(t)
	pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	k, target := downFor(w, 12*time.Second)
	if got := k.Traits().Lasts; got != 12*time.Second {
		t.Errorf("it lasts %s", got)
	}
	if due, err := k.Due(t.Context(), []v1alpha1.FaultTarget{*target}); err != nil || len(due) > 0 {
		t.Fatalf("before the injection: %v, due %v", err, due)
	}
	if err := faulttest.Called(k.Inject(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	target.InjectedAt = &metav1.MicroTime{Time: time.Now()}
	for _, uid := range []string{"new-1", "new-2"} {
		w.Replace(pod, uid)
		if effect, why := k.Effect(t.Context(), target); effect != v1alpha1.EffectNotObserved ||
			!strings.Contains(why, "serves") {
			t.Errorf("while %s serves: %s: %s", uid, effect, why)
		}
		keepDown(t, k, *target)
		w.Servers.Kill("10.0.0.1:6379")
		if effect, why := k.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed {
			t.Errorf("after %s: %s: %s", uid, effect, why)
		}
	}
	if got := strings.Join(w.Deleted, " "); got != "new-1 new-2" {
		t.Errorf("deleted %s; want both replacements, and nothing else", got)
	}
}

func TestKillWithoutDuration(t *testing.T) {
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}},
		contract.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if _, keeps := injector.(contract.Keeper); keeps || injector.Traits().Lasts != 0 {
		t.Error("a kill without a duration lasts")
	}
}

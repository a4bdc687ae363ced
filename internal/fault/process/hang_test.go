package process

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// The injection waits for a refusal, not for the end of the hang. A sleep cannot be ended early: reverting it is in
// progress until the server answers, and an error once it should have.
func TestHangSleepIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts = 3 * time.Second
		w := faulttest.NewWorld(t)
		pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		deps := w.Deps()
		injector, err := Kinds.For(
			&v1alpha1.RedisFaultSpec{
				Action:   v1alpha1.Action{Type: v1alpha1.FaultHang, Hang: &v1alpha1.Hang{Method: v1alpha1.HangDebugSleep}},
				Duration: &metav1.Duration{Duration: lasts},
			}, deps)
		faulttest.Must(t, err)
		target := &v1alpha1.FaultTarget{
			Pod:       "redis-0",
			UID:       "u0",
			Address:   faulttest.AddressOf(pod),
			RunID:     "run-u0",
			Container: "redis",
		}
		faulttest.Must(t, injector.Preflight(t.Context(), target))
		began := time.Now()
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
		faulttest.Lasted(t, "the injection", began, refusalWithin)
		target.InjectedAt = new(metav1.NewMicroTime(began))
		if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed ||
			!strings.Contains(evidence, "does not answer PING") {
			t.Errorf("%s: %s", effect, evidence)
		}
		var steps *faulttest.Pending
		for ; time.Since(began) < lasts-probeWithin; err = faulttest.Called(injector.Revert(t.Context(), target)) {
		}
		if !errors.As(err, &steps) {
			t.Errorf("revert during the sleep: %v", err)
		}
		faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
		faulttest.Lasted(t, "the hang", began, lasts)
		other := redis.NewClient(w.Servers.Dial) // another client's
		t.Cleanup(other.Close)
		go func() { _, _ = other.Do(t.Context(), target.Address, redis.Login{}, "DEBUG", "SLEEP", "3600") }()
		synctest.Wait()
		if err := faulttest.Called(injector.Revert(t.Context(), target)); err == nil || errors.As(err, &steps) ||
			!strings.Contains(err.Error(), "is over") {
			t.Errorf("revert after the end of the sleep was due: %v", err)
		}
	})
}

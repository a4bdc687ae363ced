package process

import (
	"context"
	"errors"
	"fmt"
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

// hanging simulates a server that sleeps from its first DEBUG SLEEP with a duration above 0, and counts the commands.
type hanging struct {
	began time.Time // of the sleep
	lasts time.Duration
	calls int
}

func (h *hanging) takes(string) time.Duration { return max(0, time.Until(h.began.Add(h.lasts))) }

func (h *hanging) do(_ string, command ...any) (any, error) {
	switch words := strings.TrimSpace(fmt.Sprintln(command...)); words {
	case "DEBUG SLEEP 0.000":
		h.calls++
		return "OK", nil
	case "INFO commandstats":
		return fmt.Sprintf("cmdstat_debug:calls=%d,usec=%d,usec_per_call=1\r\n", h.calls,
			int64(h.calls-1)*h.lasts.Microseconds()), nil
	case "PING":
		return "PONG", nil
	default:
		return nil, redis.Error("ERR unexpected: " + words)
	}
}

// sleep handles the command when it is sent.
func (h *hanging) sleep() {
	h.began = time.Now()
	h.calls++
}

// hangingServers handles DEBUG SLEEP before its reply is awaited.
type hangingServers struct {
	*faulttest.Scripted
	server *hanging
}

func (s hangingServers) Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error) {
	if words := fmt.Sprint(command...); strings.HasPrefix(words, "DEBUGSLEEP") && !strings.HasSuffix(words, "0.000") {
		s.server.sleep()
	}
	return s.Scripted.Do(ctx, address, login, command...)
}

// The injection waits for a refusal, not for the end of the hang. A sleep cannot be ended early: reverting it is in
// progress until the server answers, and an error once it should have.
func TestHangSleepIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts = 3 * time.Second
		w := faulttest.NewWorld(t)
		pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		server := &hanging{lasts: lasts}
		w.Servers.Answer, w.Servers.Takes = server.do, server.takes
		deps := w.Deps()
		deps.Servers = hangingServers{w.Servers, server}
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
		server.began, server.lasts = time.Now(), time.Hour // another client's
		if err := faulttest.Called(injector.Revert(t.Context(), target)); err == nil || errors.As(err, &steps) ||
			!strings.Contains(err.Error(), "is over") {
			t.Errorf("revert after the end of the sleep was due: %v", err)
		}
	})
}

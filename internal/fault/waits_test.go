package fault

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
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// lasted fails the test unless exactly so much virtual time has passed.
func lasted(t *testing.T, what string, began time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(began); took != want {
		t.Errorf("%s took %s, want %s", what, took, want)
	}
}

func never(string) time.Duration { return 24 * time.Hour }

// Sixteen servers are asked at a time.
func TestSurveyOfSlowServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 40 {
			w.pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), topology.Replica, nil)
		}
		w.servers.takes = func(string) time.Duration { return time.Second }
		began := time.Now()
		found, err := on(w.deps(), byPods(map[string]string{"app": "redis"})).Survey(t.Context())
		if err != nil || len(found) != 40 {
			t.Fatalf("%d servers, %v", len(found), err)
		}
		lasted(t, "the survey", began, 3*time.Second)
		for _, s := range found {
			if s.Err != nil || s.Said.Role != topology.Replica {
				t.Errorf("%s: %+v, %v", s.Pod.Name, s.Said, s.Err)
			}
		}
	})
}

// A port that swallows everything is no sentinel, and is not waited for.
func TestSentinelsBesideAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		w.pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
		deps := w.deps()
		deps.Sentinels = target.Sentinels{Addresses: []string{"10.0.0.1:26379"}, Servers: deps.Servers}
		found, err := on(deps, byPods(map[string]string{"app": "redis"})).Survey(t.Context())
		must(t, err)
		w.servers.do = func(string, ...any) (any, error) { return "id", nil }
		w.servers.takes = func(address string) time.Duration {
			if address == "10.0.0.2:26379" {
				return time.Hour
			}
			return 0
		}
		began := time.Now()
		deps.SentinelsBeside(t.Context(), found)
		lasted(t, "the look", began, target.LookFor)
		for _, s := range found {
			if want := s.Pod.Name == "redis-0"; s.SentinelBeside != want {
				t.Errorf("%s has a sentinel: %t, want %t", s.Pod.Name, s.SentinelBeside, want)
			}
		}
	})
}

// A server is silent that takes a command and does not answer it within target.ProbeWithin; who asks for no longer knows nothing.
func TestSilent(t *testing.T) {
	for _, tc := range []struct {
		name          string
		takes, within time.Duration // within: of the context; 0 = without end
		answer        error
		silent, fails bool
		lasts         time.Duration
	}{
		{name: "an answer in time", takes: target.ProbeWithin - 1, lasts: target.ProbeWithin - 1},
		{name: "a refusal in time", takes: time.Millisecond, answer: reply("NOPERM"), lasts: time.Millisecond},
		{name: "too late", takes: target.ProbeWithin + 1, silent: true, lasts: target.ProbeWithin},
		{name: "never", takes: time.Hour, silent: true, lasts: target.ProbeWithin},
		{name: "nobody there", answer: errSilent, fails: true},
		{name: "no time to wait", takes: time.Hour, within: 100 * time.Millisecond, fails: true, lasts: 100 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.servers.takes = func(string) time.Duration { return tc.takes }
				w.servers.do = func(string, ...any) (any, error) { return "PONG", tc.answer }
				ctx := t.Context()
				if tc.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.within)
					defer cancel()
				}
				began := time.Now()
				silent, err := w.deps().Silent(ctx, "10.0.0.1:6379", "PING")
				lasted(t, "the probe", began, tc.lasts)
				if silent != tc.silent || (err != nil) != tc.fails {
					t.Errorf("silent %t, %v; want %t, an error %t", silent, err, tc.silent, tc.fails)
				}
			})
		})
	}
}

// hanging is a server that sleeps for a time from its first DEBUG SLEEP of more than nothing on, and counts what it did.
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
		return fmt.Sprintf("cmdstat_debug:calls=%d,usec=%d,usec_per_call=1\r\n", h.calls, int64(h.calls-1)*h.lasts.Microseconds()), nil
	case "PING":
		return "PONG", nil
	default:
		return nil, reply("ERR unexpected: " + words)
	}
}

// sleep takes the command up, as it is sent.
func (h *hanging) sleep() {
	h.began = time.Now()
	h.calls++
}

// hangingServers sees the order to sleep before its answer is waited for.
type hangingServers struct {
	*scripted
	server *hanging
}

func (s hangingServers) Do(ctx context.Context, address string, login topology.Login, command ...any) (any, error) {
	if words := fmt.Sprint(command...); strings.HasPrefix(words, "DEBUGSLEEP") && !strings.HasSuffix(words, "0.000") {
		s.server.sleep()
	}
	return s.scripted.Do(ctx, address, login, command...)
}

// The injection waits for a refusal, not for the end of the hang. A sleep cannot be ended early: reverting it is in progress until the server
// answers, and an error once it should have.
func TestHangSleepIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts = 3 * time.Second
		w := newWorld(t)
		pod := w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		server := &hanging{lasts: lasts}
		w.servers.do, w.servers.takes = server.do, server.takes
		deps := w.deps()
		deps.Servers = hangingServers{w.servers, server}
		injector, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultHang, Hang: &v1alpha1.Hang{Method: v1alpha1.HangDebugSleep}}, Duration: &metav1.Duration{Duration: lasts}}, deps)
		must(t, err)
		target := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: addressOf(pod), RunID: "run-u0", Container: "redis"}
		must(t, injector.Preflight(t.Context(), target))
		began := time.Now()
		must(t, called(injector.Inject(t.Context(), target)))
		lasted(t, "the injection", began, refusalWithin)
		target.InjectedAt = new(metav1.NewMicroTime(began))
		if effect, evidence := injector.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed || !strings.Contains(evidence, "does not answer PING") {
			t.Errorf("%s: %s", effect, evidence)
		}
		var steps *pending
		for ; time.Since(began) < lasts-probeWithin; err = called(injector.Revert(t.Context(), target)) {
		}
		if !errors.As(err, &steps) {
			t.Errorf("reverting a sleep that goes on: %v", err)
		}
		must(t, called(injector.Revert(t.Context(), target)))
		lasted(t, "the hang", began, lasts)
		server.began, server.lasts = time.Now(), time.Hour // somebody else's
		if err := called(injector.Revert(t.Context(), target)); err == nil || errors.As(err, &steps) || !strings.Contains(err.Error(), "is over") {
			t.Errorf("reverting a sleep that should be over: %v", err)
		}
	})
}

// Sentinels that hang keep a look at a failover waiting for target.LookFor, however many they are.
func TestFailoverAsksSentinelsWithinLimits(t *testing.T) {
	for hanging, says := range map[int]string{0: "3 of 3 sentinels name", 1: "2 of 3 sentinels name", 2: "no majority of the 3 sentinels"} {
		t.Run(fmt.Sprintf("%d hang", hanging), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, hit := sentinelWorld(t, nil)
				injector := sentinelInjector(t, w, "").(failover)
				must(t, injector.Preflight(t.Context(), hit))
				injector.Sentinels = target.Sentinels{Servers: w.servers}
				var peers []any
				for i := range 3 {
					injector.Sentinels.Addresses = append(injector.Sentinels.Addresses, fmt.Sprintf("10.0.1.%d:26379", i))
					peers = append(peers, []any{"runid", fmt.Sprintf("id-%d", i), "ip", fmt.Sprintf("10.0.1.%d", i), "port", "26379"})
				}
				one := w.servers.do
				w.servers.do = func(address string, command ...any) (any, error) {
					switch words := strings.TrimSpace(fmt.Sprintln(command...)); {
					case words == "SENTINEL MYID":
						return "id-" + address[len("10.0.1."):len("10.0.1.0")], nil
					case words == "SENTINEL SENTINELS m":
						return peers, nil
					}
					w.servers.mu.Lock()
					defer w.servers.mu.Unlock()
					return one(address, command...)
				}
				w.servers.takes = func(address string) time.Duration {
					if address[:6] == "10.0.1" && int(address[7]-'0') < hanging {
						return never(address)
					}
					return 0
				}
				began := time.Now()
				_, evidence := injector.Effect(t.Context(), hit)
				if !strings.Contains(evidence, says) {
					t.Errorf("%q does not say %q", evidence, says)
				}
				want := target.LookFor
				if hanging == 0 {
					want = 0
				}
				lasted(t, "the look", began, want)
			})
		})
	}
}

package target_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// Sixteen servers are queried at a time.
func TestSurveyOfSlowServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		for i := range 40 {
			w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), topology.Replica, nil)
		}
		w.Servers.Takes = func(string) time.Duration { return time.Second }
		began := time.Now()
		found, err := faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Survey(t.Context())
		if err != nil || len(found) != 40 {
			t.Fatalf("%d servers, %v", len(found), err)
		}
		faulttest.Lasted(t, "the survey", began, 3*time.Second)
		for _, s := range found {
			if s.Err != nil || s.State.Role != topology.Replica {
				t.Errorf("%s: %+v, %v", s.Pod.Name, s.State, s.Err)
			}
		}
	})
}

// A port that drops everything is no sentinel, and does not delay the survey.
func TestUnresponsiveSentinelPortsDoNotDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := faulttest.NewWorld(t)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
		deps := w.Deps()
		deps.Sentinels = target.Sentinels{Addresses: []string{"10.0.0.1:26379"}, Servers: deps.Servers}
		found, err := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Survey(t.Context())
		faulttest.Must(t, err)
		w.Servers.Answer = func(string, ...any) (any, error) { return "id", nil }
		w.Servers.Takes = func(address string) time.Duration {
			if address == "10.0.0.2:26379" {
				return time.Hour
			}
			return 0
		}
		began := time.Now()
		deps.SentinelsBeside(t.Context(), found)
		faulttest.Lasted(t, "the look", began, target.QueryTimeout)
		for _, s := range found {
			if want := s.Pod.Name == "redis-0"; s.SentinelBeside != want {
				t.Errorf("%s has a sentinel: %t, want %t", s.Pod.Name, s.SentinelBeside, want)
			}
		}
	})
}

// A server that accepts a command and does not answer within target.ProbeWithin is unresponsive; a shorter context leads to an error.
func TestSilent(t *testing.T) {
	for _, tc := range []struct {
		name          string
		takes, within time.Duration // within: of the context; 0 = no deadline
		answer        error
		silent, fails bool
		lasts         time.Duration
	}{
		{name: "an answer in time", takes: target.ProbeWithin - 1, lasts: target.ProbeWithin - 1},
		{name: "a refusal in time", takes: time.Millisecond, answer: redis.Error("NOPERM"), lasts: time.Millisecond},
		{name: "too late", takes: target.ProbeWithin + 1, silent: true, lasts: target.ProbeWithin},
		{name: "never", takes: time.Hour, silent: true, lasts: target.ProbeWithin},
		{name: "no server", answer: faulttest.ErrSilent, fails: true},
		{name: "no time to wait", takes: time.Hour, within: 100 * time.Millisecond, fails: true, lasts: 100 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := faulttest.NewWorld(t)
				w.Servers.Takes = func(string) time.Duration { return tc.takes }
				w.Servers.Answer = func(string, ...any) (any, error) { return "PONG", tc.answer }
				ctx := t.Context()
				if tc.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.within)
					defer cancel()
				}
				began := time.Now()
				silent, err := w.Deps().Silent(ctx, "10.0.0.1:6379", "PING")
				faulttest.Lasted(t, "the probe", began, tc.lasts)
				if silent != tc.silent || (err != nil) != tc.fails {
					t.Errorf("silent %t, %v; want %t, an error %t", silent, err, tc.silent, tc.fails)
				}
			})
		})
	}
}

package track

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// world is a deployment in memory with scripted servers, to test the follower's poll intervals and timeouts exactly.
type world struct {
	t       *testing.T
	network *memnet.Network
	began   time.Time
}

// inMemory runs a test in virtual time.
func inMemory(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, &world{t: t, network: memnet.New(), began: time.Now()})
	})
}

// server starts a server that reports to be a primary without replicas.
func (w *world) server(address string) *memredis.Server {
	w.t.Helper()
	s := memredis.Start(w.t, w.network, address, memredis.Options{})
	s.Answer("INFO", encode("redis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:"+address+"\r\n"))
	return s
}

// primary and replica script ROLE.
func primary(s *memredis.Server, replicas ...string) {
	list := []any{}
	for _, r := range replicas {
		host, port, _ := strings.Cut(r, ":")
		list = append(list, []any{host, port, "0"})
	}
	s.Answer("ROLE", encode([]any{"master", 0, list}))
}

func replica(s *memredis.Server, of string) {
	host, port, _ := strings.Cut(of, ":")
	n, _ := strconv.Atoi(port)
	s.Answer("ROLE", encode([]any{"slave", host, n, "connected", 0}))
}

// encode returns a reply without its last line break, which the server adds.
func encode(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("$%d\r\n%s", len(v), v)
	case int:
		return fmt.Sprintf(":%d", v)
	case float64: // as JSON has it
		return fmt.Sprintf(":%d", int(v))
	}
	lines := []string{fmt.Sprintf("*%d", len(v.([]any)))}
	for _, item := range v.([]any) {
		lines = append(lines, encode(item))
	}
	return strings.Join(lines, "\r\n")
}

// start starts a follower, and returns the time until the layout was known.
func (w *world) start(ctx context.Context, target Target, kind topology.Kind) (Tracker, time.Duration, error) {
	w.t.Helper()
	target.After, target.Log, target.tcp = time.After, slog.New(slog.DiscardHandler), w.network.Dial
	began := time.Now()
	tracker, err := Start(ctx, target, kind)
	if err == nil {
		w.t.Cleanup(tracker.Close)
	}
	return tracker, time.Since(began), err
}

// follow is start, and fails the test on an error.
func (w *world) follow(target Target, kind topology.Kind) Tracker {
	w.t.Helper()
	tracker, _, err := w.start(w.t.Context(), target, kind)
	if err != nil {
		w.t.Fatal(err)
	}
	return tracker
}

// at lets time pass to an instant after the start, and until everything due at it has been done.
func (w *world) at(d time.Duration) {
	w.t.Helper()
	left := time.Until(w.began.Add(d))
	if left < 0 {
		w.t.Fatalf("the time is %s, past %s", -left, d)
	}
	time.Sleep(left)
	synctest.Wait()
}

// shard fails the test unless the first shard is exactly this.
func (w *world) shard(tracker Tracker, primary string, replicas ...string) {
	w.t.Helper()
	s := tracker.Map().Shards[0]
	if s.Primary != primary || !slices.Equal(s.Replicas, replicas) {
		w.t.Errorf("after %s: %+v (%s), want primary %s, replicas %v", time.Since(w.began), s, tracker.Map().Problem, primary,
			replicas)
	}
}

func TestPollInterval(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		s := w.server("a:1")
		tracker := w.follow(Target{Addresses: []string{"a:1"}}, topology.KindReplication)
		w.at(10*time.Second - 1)
		if n := s.Calls("ROLE"); n != 10 {
			t.Errorf("%d polls in 10 s, want one per second", n)
		}
		w.at(10*time.Second + 500*time.Millisecond)
		before := s.Calls("ROLE")
		tracker.Refresh("test")
		synctest.Wait()
		if n := s.Calls("ROLE") - before; n != 1 {
			t.Errorf("%d immediate polls after a request", n)
		}
		for d := 10*time.Second + 500*time.Millisecond; d < 11*time.Second+500*time.Millisecond; d += 5 * time.Millisecond {
			w.at(d)
			tracker.Refresh("test")
		}
		if n := s.Calls("ROLE") - before; n != 20 {
			t.Errorf("%d polls in a second of continuous requests, want 20", n)
		}
	})
}

func TestFailoverIsDetectedAtTheNextPoll(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		a, b := w.server("a:1"), w.server("b:1")
		primary(a, "b:1")
		replica(b, "a:1")
		tracker := w.follow(Target{Addresses: []string{"a:1"}}, topology.KindReplication)
		w.at(0)
		w.shard(tracker, "a:1", "b:1")
		changes := make(chan *topology.Map, 10)
		tracker.OnChange(func(m *topology.Map) { changes <- m })

		w.at(1500 * time.Millisecond)
		primary(b, "a:1")
		replica(a, "b:1")
		w.at(2*time.Second - 1)
		w.shard(tracker, "a:1", "b:1")
		w.at(2 * time.Second)
		w.shard(tracker, "b:1", "a:1")
		if m := <-changes; m.Version < 2 {
			t.Errorf("the listener was called with version %d", m.Version)
		}

		w.at(2200 * time.Millisecond)
		primary(a, "b:1")
		replica(b, "a:1")
		tracker.Refresh("READONLY")
		synctest.Wait()
		w.shard(tracker, "a:1", "b:1")
	})
}

// A hanging server is removed when its answer is overdue, while the others are followed; it is added again at the first
// poll that it answers.
func TestHangingReplica(t *testing.T) {
	inMemory(t, func(_ *testing.T, w *world) {
		a, b, c := w.server("a:1"), w.server("b:1"), w.server("c:1")
		primary(a, "b:1", "c:1")
		replica(b, "a:1")
		replica(c, "a:1")
		tracker := w.follow(Target{Addresses: []string{"a:1"}, Timeout: 700 * time.Millisecond}, topology.KindReplication)
		w.at(500 * time.Millisecond)
		b.Stop()
		w.at(1700*time.Millisecond - 1)
		w.shard(tracker, "a:1", "b:1", "c:1")
		w.at(1700 * time.Millisecond)
		w.shard(tracker, "a:1", "c:1")

		w.at(2500 * time.Millisecond)
		primary(c, "a:1")
		replica(a, "c:1")
		w.at(3 * time.Second)
		w.shard(tracker, "c:1", "a:1")
		primary(a, "b:1", "c:1")
		replica(c, "a:1")
		w.at(4500 * time.Millisecond)
		b.Continue()
		w.at(5 * time.Second)
		w.shard(tracker, "a:1", "b:1", "c:1")
	})
}

func TestStartRetriesUntilTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(w *world)
		login   LoginFunc
		after   time.Duration
		want    string // in the error; "" = none
	}{
		"no listener": {
			func(*world) {},
			nil,
			5 * time.Second,
			"find the primary: no server has role primary; a:1: connect: connection refused",
		},
		"packets are dropped": {func(w *world) {
			w.network.Set("a:1",
				memnet.Swallow)
		}, nil, 5 * time.Second, "a:1: no reply in time"},
		"it hangs": {func(w *world) { w.server("a:1").Stop() }, nil, 5 * time.Second, "a:1: "},
		"only a replica": {func(w *world) {
			replica(w.server("a:1"),
				"b:1")
		}, nil, 5 * time.Second, "no server has role primary"},
		"it starts late": {func(w *world) {
			s := w.server("a:1")
			s.Kill()
			time.AfterFunc(2500*time.Millisecond, s.Restart)
		}, nil, 3 * time.Second, ""},
		"no login": {func(w *world) {
			memredis.Start(w.t, w.network, "a:1", memredis.Options{
				Password: "p",
			})
		}, nil, restBetween, "NOAUTH"},
		"a wrong login": {
			func(w *world) { memredis.Start(w.t, w.network, "a:1", memredis.Options{Password: "p"}) },
			func() (redis.Login, error) { return redis.Login{Password: "q"}, nil }, restBetween, "WRONGPASS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, w *world) {
				tc.prepare(w)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, took, err := w.start(ctx, Target{Addresses: []string{"a:1"}, Login: tc.login}, topology.KindReplication)
				if took != tc.after || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("after %s: %v; want after %s: %q", took, err, tc.after, tc.want)
				}
			})
		})
	}
}

// An announced address is dropped after a minute without an answer and without an announcement.
func TestAnnouncedAddressIsDropped(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		a := w.server("a:1")
		primary(a, "b:1")
		w.follow(Target{Addresses: []string{"a:1"}}, topology.KindReplication)
		w.at(10500 * time.Millisecond)
		primary(a)
		w.at(10 * time.Minute)
		if n := w.network.Dials("b:1"); n != dropAfter {
			t.Errorf("it was dialled %d times, want %d", n, dropAfter)
		}
		primary(a, "b:1")
		w.at(11 * time.Minute)
		if n := w.network.Dials("b:1"); n <= dropAfter {
			t.Error("it is not dialled when it is announced again")
		}
	})
}

// A recovered server is dialled at the next poll, however long it was down.
func TestRecoveredServerIsPolledImmediately(t *testing.T) {
	inMemory(t, func(_ *testing.T, w *world) {
		a, b := w.server("a:1"), w.server("b:1")
		primary(a, "b:1")
		replica(b, "a:1")
		tracker := w.follow(Target{Addresses: []string{"a:1"}}, topology.KindReplication)
		w.at(500 * time.Millisecond)
		b.Kill()
		w.at(30500 * time.Millisecond)
		w.shard(tracker, "a:1")
		b.Restart()
		tracker.Refresh("test")
		synctest.Wait()
		w.shard(tracker, "a:1", "b:1")
	})
}

// clusterOf scripts the slots: half of them on each primary, except those that moved to the second.
func clusterOf(servers []*memredis.Server, moved int) {
	entry := func(first, last int, address string) []any {
		host, port, _ := strings.Cut(address, ":")
		n, _ := strconv.Atoi(port)
		return []any{first, last, []any{host, n, host}}
	}
	slots := []any{entry(moved, 8191, servers[0].Address()), entry(8192, 16383, servers[1].Address())}
	if moved > 0 {
		slots = append(slots, entry(0, moved-1, servers[1].Address()))
	}
	for _, s := range servers {
		s.Answer("CLUSTER SLOTS", encode(slots))
	}
}

// A MOVED takes effect at once, and for twenty polls even if no polled node confirms it; after that it is dropped.
func TestMovedIsKeptForTwentyPolls(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		servers := []*memredis.Server{w.server("a:1"), w.server("b:1")}
		clusterOf(servers, 0)
		tracker := w.follow(Target{Addresses: []string{"a:1"}}, topology.KindCluster)
		owner := func() int {
			n, _ := tracker.Map().ShardOf(5)
			return n
		}
		w.at(500 * time.Millisecond)
		for _, address := range []string{"", "x:1", "[::1]:6379"} {
			if tracker.Moved(6, address) || len(tracker.Map().Shards) != 2 {
				t.Errorf("MOVED to %q makes %+v", address, tracker.Map().Shards)
			}
		}
		w.at(1500 * time.Millisecond) // each has asked for a poll, and one that was made meanwhile for another one
		before := tracker.Map()
		if !tracker.Moved(5, "b:1") {
			t.Error("the second primary is unknown")
		}
		if m := tracker.Map(); owner() != 1 || m.Version <= before.Version || m.Shards[1].Slots != 8193 {
			t.Errorf("at once: shard %d, %+v", owner(), m.Shards)
		}
		if n, _ := before.ShardOf(5); n != 0 {
			t.Error("the previous map was changed")
		}
		// The first of the twenty polls is made immediately, then one per second.
		w.at(20*time.Second + 500*time.Millisecond - 1)
		if owner() != 1 {
			t.Error("dropped before twenty polls")
		}
		w.at(20*time.Second + 500*time.Millisecond)
		if owner() != 0 {
			t.Error("not dropped after twenty polls that did not confirm it")
		}

		tracker.Moved(5, "b:1")
		clusterOf(servers, 10)
		w.at(time.Minute)
		if owner() != 1 || tracker.Map().Shards[1].Slots != 8202 {
			t.Errorf("confirmed: shard %d, %+v", owner(), tracker.Map().Shards)
		}
	})
}

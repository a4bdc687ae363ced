package track

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// sentinels3 are three sentinels that watch a:1 with the replica b:1, and list each other.
func (w *world) sentinels3() []*memredis.Server {
	w.t.Helper()
	addresses := []string{"s1:1", "s2:1", "s3:1"}
	var all []*memredis.Server
	for i, address := range addresses {
		s := w.server(address)
		s.Answer("SENTINEL MASTERS", encode([]any{[]any{"name", "m"}}))
		s.Answer("SENTINEL MYID", encode(address))
		var others []any
		for _, other := range append(addresses[:i:i], addresses[i+1:]...) {
			host, _, _ := strings.Cut(other, ":")
			others = append(others, []any{"ip", host, "port", "1"})
		}
		s.Answer("SENTINEL SENTINELS", encode(others))
		names(s, "a", "b")
		all = append(all, s)
	}
	return all
}

// names scripts the primary and the replica that a sentinel reports.
func names(s *memredis.Server, primary, replica string) {
	s.Answer("SENTINEL GET-MASTER-ADDR-BY-NAME", encode([]any{primary, "1"}))
	s.Answer("SENTINEL REPLICAS",
		encode([]any{[]any{"ip", replica, "port", "1", "flags", "slave", "role-reported", "slave"}}))
}

const (
	switched = "m a 1 b 1" // what is published with +switch-master
	asked    = "SENTINEL GET-MASTER-ADDR-BY-NAME"
)

// An announcement is followed by two seconds of fast polls, because the other sentinels learn of it later; a single
// sentinel causes no change.
func TestAnnouncedFailover(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		s := w.sentinels3()
		tracker := w.follow(Target{Sentinels: []string{"s1:1"}}, topology.KindSentinel)
		w.at(1500 * time.Millisecond)
		w.shard(tracker, "a:1", "b:1")
		before := s[0].Calls(asked)

		names(s[1], "b", "a")
		if n := s[1].Publish("+switch-master", switched); n != 1 {
			t.Fatalf("%d subscriptions to a sentinel that was only announced, want none", n)
		}
		synctest.Wait()
		w.shard(tracker, "a:1", "b:1")
		w.at(2975 * time.Millisecond)
		names(s[0], "b", "a")
		w.at(3*time.Second - 1)
		w.shard(tracker, "a:1", "b:1")
		w.at(3 * time.Second)
		w.shard(tracker, "b:1", "a:1")
		if id := tracker.Map().Shards[0].ID; id != "m" {
			t.Errorf("the shard's name is %q", id)
		}

		w.at(4 * time.Second)
		if n := s[0].Calls(asked) - before; n != eagerLooks {
			t.Errorf("%d polls after the announcement, want %d", n, eagerLooks)
		}
		w.at(14 * time.Second)
		if n := s[0].Calls(asked) - before; n != eagerLooks+10 {
			t.Errorf("%d polls in the following ten seconds, want 10", n-eagerLooks)
		}
	})
}

// Without a majority the primary stays, and the map contains the problem.
func TestMajorityIsLost(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		s := w.sentinels3()
		tracker := w.follow(Target{Sentinels: []string{"s1:1", "s2:1", "s3:1"}, MasterName: "m"}, topology.KindSentinel)
		w.at(1500 * time.Millisecond)
		s[0].Kill()
		s[1].Kill()
		names(s[2], "b", "a")
		w.at(time.Minute)
		if m := tracker.Map(); m.Shards[0].Primary != "a:1" ||
			!strings.HasPrefix(m.Problem, "no majority of the 3 sentinels: 1 for b:1") {
			t.Errorf("%+v, problem %q", m.Shards, m.Problem)
		}
		names(s[0], "b", "a")
		s[0].Restart()
		tracker.Refresh("test")
		synctest.Wait()
		if m := tracker.Map(); m.Shards[0].Primary != "b:1" || m.Problem != "" {
			t.Errorf("with the majority back: %+v, problem %q", m.Shards, m.Problem)
		}
	})
}

// A subscription is renewed when its connection breaks, or when it receives nothing for a long time.
func TestSubscriptionIsRenewed(t *testing.T) {
	for name, away := range map[string]struct {
		begin, end func(w *world, s *memredis.Server)
	}{
		"the sentinel restarts": {
			func(_ *world, s *memredis.Server) { s.Kill() },
			func(_ *world, s *memredis.Server) { s.Restart() },
		},
		"the sentinel hangs": {
			func(_ *world, s *memredis.Server) { s.Stop() },
			func(_ *world, s *memredis.Server) { s.Continue() },
		},
		"nothing arrives": {
			func(w *world, s *memredis.Server) { w.network.Set(s.Address(), memnet.Swallow) },
			func(w *world, s *memredis.Server) { w.network.Set(s.Address(), memnet.Pass) },
		},
		"the connection is cut": {func(w *world, s *memredis.Server) {
			w.network.Cut(
				s.Address())
		}, func(*world, *memredis.Server) {}},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, w *world) {
				s := w.sentinels3()
				tracker := w.follow(Target{Sentinels: []string{"s1:1"}}, topology.KindSentinel)
				w.at(1500 * time.Millisecond)
				away.begin(w, s[0])
				w.at(20 * time.Second)
				away.end(w, s[0])
				w.at(22500 * time.Millisecond) // a second until the retry, and one for the handshake
				for _, one := range s {
					names(one, "b", "a")
				}
				if n := s[0].Publish("+switch-master", switched); n != 1 {
					t.Errorf("%d subscriptions", n)
				}
				w.at(22500*time.Millisecond + restBetween)
				w.shard(tracker, "b:1", "a:1")
			})
		})
	}
}

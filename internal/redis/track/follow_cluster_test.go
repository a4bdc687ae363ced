package track

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// recorded are the replies of a real node, by situation and command. The node is the primary of the second of three
// shards; the first, at 127.0.0.1:7000, has the only replica, at 127.0.0.1:7003:
//
//   - before: all run
//   - killed: the first primary was killed, and its replica elected
//   - back: the first primary was started again, and is a replica
//   - takeover: the elected primary hangs, and its replica has taken its slots by CLUSTER FAILOVER TAKEOVER
type recorded map[string]map[string]any

// recordings are those of each server in testdata.
func recordings(t *testing.T) map[string]recorded {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v: %v", files, err)
	}
	all := map[string]recorded{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".json")] = r
	}
	return all
}

// answer makes the node give the replies of a situation.
func (r recorded) answer(node *memredis.Server, situation string) {
	for command, reply := range r[situation] {
		node.Answer(command, encode(reply))
	}
}

// In CLUSTER SHARDS of Redis 8 and Valkey 9, a primary that lost its slots stays a master of its shard until it answers
// again.
func TestTruthClusterFailoverOfEachServer(t *testing.T) {
	for server, replies := range recordings(t) {
		t.Run(server, func(t *testing.T) {
			inMemory(t, func(t *testing.T, w *world) {
				node := w.server("127.0.0.1:7001")
				replies.answer(node, "before")
				tracker := w.follow(Target{Addresses: []string{node.Address()}}, topology.KindCluster)
				now := 10 * time.Second
				for _, tc := range []struct{ situation, primary, replicas string }{
					{"before", "127.0.0.1:7000", "[127.0.0.1:7003]"},
					{"killed", "127.0.0.1:7003", "[]"},
					{"back", "127.0.0.1:7003", "[127.0.0.1:7000]"},
					{"takeover", "127.0.0.1:7000", "[]"},
				} {
					replies.answer(node, tc.situation)
					w.at(now)
					now += 10 * time.Second
					m := tracker.Map()
					n, served := m.ShardOf(0)
					got := fmt.Sprintf("%d shards; slot 0 served %t by shard %d: primary %s, replicas %v, %d slots", len(m.Shards),
						served, n, m.Shards[0].Primary, m.Shards[0].Replicas, m.Shards[0].Slots)
					want := fmt.Sprintf("3 shards; slot 0 served true by shard 0: primary %s, replicas %s, 8192 slots", tc.primary,
						tc.replicas)
					truth.Report(t, "T21", server+" "+tc.situation, want, got, got == want)
				}
			})
		})
	}
}

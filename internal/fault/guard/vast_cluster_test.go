package guard

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// A node that claims a cluster of any size is refused, or costs little: neither time nor memory grow with the square of
// what it claims.
func TestVastClusters(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		nodes int
		line  func(i int) string
		says  string
	}{
		"primaries with all slots": {100_000, func(i int) string {
			return fmt.Sprintf("n%d 10.1.0.1:6379@16379 master - 0 0 %d connected 0-16383", i, i)
		}, "lists more than 10000 nodes"},
		"replicas without an address": {100_000, func(i int) string {
			return fmt.Sprintf(
				"n%d :0@0 slave,noaddr,fail n%d 0 0 1 disconnected", i, i/2)
		}, "lists more than 10000 nodes"},
		"in a handshake": {100_000, func(i int) string {
			return fmt.Sprintf(
				"n%d 10.1.0.1:6379@16379 handshake - 0 0 0 connected", i)
		}, "lists more than 10000 nodes"},
		"as many as there may be": {9_998, func(i int) string {
			return fmt.Sprintf(
				"n%d :0@0 master,noaddr,fail - 0 0 1 disconnected 0", i)
		}, ""},
		"each with a replica": {4_999, func(i int) string {
			return fmt.Sprintf(
				"n%d 10.1.0.1:6379@16379 master - 0 0 1 connected 5\nr%d :0@0 slave,noaddr,fail n%d 0 0 1 disconnected", i, i, i)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			pod := w.Pod("redis-0", "uid", "10.0.0.1", topology.Primary, nil)
			w.Servers.Change(faulttest.AddressOf(pod), func(s *memredis.State) { s.Mode = "cluster" })
			var all strings.Builder
			all.WriteString("me 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-16383\n")
			for i := range test.nodes {
				all.WriteString(test.line(i) + "\n")
			}
			w.Servers.Script("CLUSTER NODES", faulttest.Reply(all.String()))
			w.Servers.Script("CLUSTER MYID", faulttest.Reply("me"))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			spec := &v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill},
				Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectOne},
			}
			selected, err := Select(t.Context(), on(w), spec, contract.Traits{Silences: true}, nil, nil)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			mib := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d KiB, %s, %d MiB, %d targets: %.200v", all.Len()>>10, took, mib, len(selected.Targets), err)
			if took > 10*time.Second || mib > 256 || err != nil && len(err.Error()) > 4096 {
				t.Errorf("it took %s and %d MiB; %.300v", took, mib, err)
			}
			p, _ := problem.From(err)
			if test.says != "" && (p == nil || p.Reason != v1alpha1.ReasonNotSupported ||
				!strings.Contains(p.Message, test.says)) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// benchmarkInMemory runs a benchmark of set and get by 4 users or at a rate, each request of 10 ms, with the flags in
// addition.
func benchmarkInMemory(t *testing.T, load string, args ...string) *result.Load {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.yaml")
	text := strings.Replace(clitest.LoadTestYAML, `{commands: [{name: get, command: [GET, "{key}"]}]}`,
		"{benchmark: {tests: [set, get, incr]}}", 1)
	if err := os.WriteFile(file, []byte(strings.Replace(text, "{users: 10, duration: 30s}", load, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	network := memnet.New()
	memredis.Start(t, network, inMemory, memredis.Options{})
	out, stderr, err := loadInMemory(t.Context(), t, network,
		append([]string{"-f", file, "--added-latency", "10ms"}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	return clitest.Result(t, out)
}

// The tests of a benchmark run one after the other; the throughput of each counts its own part.
func TestBenchmarkInTurn(t *testing.T) {
	for name, tt := range map[string]struct {
		load string
		ok   uint64  // of each test
		rate float64 // of each test, while it is sent
	}{
		"closed loop":               {"{users: 4, rampUp: 1s, warmUp: 1s, duration: 6s}", 800, 400},
		"open loop":                 {"{rate: 100, warmUp: 1s, duration: 6s}", 200, 100},
		"requests of a closed loop": {"{users: 4, requests: 1200}", 400, 400},
		"requests of an open loop":  {"{rate: 100, requests: 600}", 200, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := benchmarkInMemory(t, tt.load)
				for _, o := range r.Operations {
					// A request on the boundary of two parts counts for the one in which it was sent.
					if o.OK+8 < tt.ok || o.OK > tt.ok+8 || o.Sent == nil || o.Throughput < 0.97*tt.rate ||
						o.Throughput > 1.03*tt.rate {
						t.Errorf("%s: %d in %v, %.1f/s; want %d, %v/s", o.Name, o.OK, o.Sent, o.Throughput, tt.ok, tt.rate)
					}
				}
				if len(r.Operations) != 3 || len(r.Anomalies) > 0 {
					t.Errorf("operations %v, anomalies %v", r.Operations, r.Anomalies)
				}
			})
		})
	}
}

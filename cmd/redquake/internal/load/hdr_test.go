package load

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// The library reads the log back: of each operation the same requests and percentiles as the result, without the
// warm-up, in which the server stood still.
func TestHDR(t *testing.T) {
	file := filepath.Join(t.TempDir(), "latencies.hlog")
	var r *result.Load
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, inMemory, memredis.Options{})
		time.AfterFunc(time.Second, server.Stop)
		time.AfterFunc(1500*time.Millisecond, server.Continue)
		time.AfterFunc(6*time.Second, func() { server.SetCost(2 * time.Millisecond) })
		out, stderr, err := loadInMemory(t.Context(), t, network, "--rate", "200", "--warm-up", "3s", "--duration", "5s",
			"--added-latency", "1ms", "--hdr", file, "--min-success", "0")
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		r = clitest.Result(t, out)
	})
	log, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	sums, lines := map[string]*hdrhistogram.Histogram{}, map[string]int{}
	var first int64 = math.MaxInt64
	for reader := hdrhistogram.NewHistogramLogReader(log); ; {
		line, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if line == nil {
			break
		}
		lines[line.Tag()]++
		first = min(first, line.StartTimeMs())
		if sums[line.Tag()] == nil {
			sums[line.Tag()] = line
		} else {
			sums[line.Tag()].Merge(line)
		}
		if took := line.EndTimeMs() - line.StartTimeMs(); took != 1000 {
			t.Errorf("a line of %s is of %d ms", line.Tag(), took)
		}
	}
	if begun := r.Start.UnixMilli(); first-begun != 3000 {
		t.Errorf("the first line begins %d ms after the load, want 3000", first-begun)
	}
	for _, o := range r.Operations {
		sum := sums[o.Name]
		if sum == nil || uint64(sum.TotalCount()) != o.OK || lines[o.Name] != 5 {
			t.Fatalf("%s: %d lines, want 5 with %d successes", o.Name, lines[o.Name], o.OK)
		}
		for q, want := range map[float64]result.Seconds{
			50: o.Latency.P50, 90: o.Latency.P90, 95: o.Latency.P95, 99: o.Latency.P99, 99.9: o.Latency.P999,
			99.99: o.Latency.P9999, 100: o.Latency.Max,
		} {
			if got := float64(sum.ValueAtQuantile(q)); want == 0 || math.Abs(got/float64(want)-1) > 0.002 {
				t.Errorf("%s: p%v is %v, and %v in the result", o.Name, q, time.Duration(got), time.Duration(want))
			}
		}
	}
	if len(sums) != len(r.Operations) {
		t.Errorf("%d operations, want %d", len(sums), len(r.Operations))
	}
}

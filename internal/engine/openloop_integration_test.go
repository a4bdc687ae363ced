//go:build integration

package engine

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Parameters of the measurement.
const (
	stallRate   = 2000
	stallLength = 20 * time.Second
	stallTime   = time.Second // per stallEvery, the first stallFirst after its begin
	stallEvery  = 10 * time.Second
	stallFirst  = 4 * time.Second
)

// stall is a period in which the server was stopped, and the instant at which it had processed the queue; from the
// run's start.
type stall struct{ from, to, drained time.Duration }

// TestMeasureOpenLoopLatency complements TestOpenLoopLatencyFollowsTheSchedule, which is exact, in virtual time: on
// this machine's clock, with a real Redis that is stopped for 1 s in every 10 s, it prints the quantiles that follow
// from the schedule and from instants that the test itself timed (of SIGSTOP and SIGCONT, and when the server's own
// count of commands had caught up), and what the load measured.
func TestMeasureOpenLoopLatency(t *testing.T) {
	if os.Getenv("REDQUAKE_ACCURACY_OUT") == "" {
		t.Skip("a measurement: run make accuracy")
	}
	o, stalls := stalled(t)
	if o.sum.Due != stallRate*20 || o.sum.OK != o.sum.Due {
		t.Fatalf("want all of %d ok: %s", stallRate*20, describe(o))
	}
	want := scheduled(stalls)
	t.Logf("%-8s %12s %12s %12s", "QUANTILE", "SCHEDULE", "MEASURED", "DIFFERENCE")
	for _, q := range []float64{0.9, 0.95, 0.99} {
		expected, got := want[int(math.Ceil(q*float64(len(want))))-1], o.sum.Latency.Quantile(q)
		t.Logf("p%-7g %12s %12s %12s", q*100, expected, got, got-expected)
	}
	t.Logf("p95 of the service time: %s", o.sum.Service.Quantile(0.95))
}

// stalled runs the load, and returns the stalls.
func stalled(t *testing.T) (o *outcome, stalls []stall) {
	t.Helper()
	server := redistest.Start(t)
	p := testPlan(server.Address())
	p.Client.Connections, p.Client.RequestTimeout = 50, 5*time.Second
	p.Probe, p.Info = plan.Probe{}, 0
	p.Shape = plan.Shape{Rate: stallRate, Duration: stallLength}
	r := prepared(t, p)
	polls := int64(0)
	processed := func() int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(server.Info("total_commands_processed")), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		polls++
		return n - polls
	}
	before := processed()
	start, wait := inBackground(t, t.Context(), r)
	for at := stallFirst; at < stallLength; at += stallEvery {
		await.PassTo(start.Add(at), "the schedule of the stalls")
		server.Stop()
		one := stall{from: time.Since(start)}
		await.Pass(stallTime, "the length of a stall")
		one.to = time.Since(start)
		server.Cont()
		for {
			done := processed() - before
			if one.drained = time.Since(start); done+1 >= int64(one.drained.Seconds()*stallRate) {
				break
			}
			if one.drained > one.to+5*time.Second {
				t.Fatalf("5 s after the stall %d of %.0f requests were served", done, one.drained.Seconds()*stallRate)
			}
		}
		stalls = append(stalls, one)
	}
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	return o, stalls
}

// scheduled are the latencies, ascending, that the schedule and the stalls make: what was due from a stall's begin on
// is served one after the other from its end on.
func scheduled(stalls []stall) []time.Duration {
	all := make([]time.Duration, stallRate*stallLength/time.Second)
	due := func(i int) time.Duration {
		return time.Duration((float64(i) + 0.5) / stallRate * float64(time.Second))
	}
	for _, s := range stalls {
		var queue []int
		for i := range all {
			if d := due(i); s.from <= d && d < s.drained {
				queue = append(queue, i)
			}
		}
		for k, i := range queue {
			all[i] = max(0, s.to+(s.drained-s.to)*time.Duration(k+1)/time.Duration(len(queue))-due(i))
		}
	}
	slices.Sort(all)
	return all
}

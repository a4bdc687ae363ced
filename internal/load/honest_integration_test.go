//go:build integration

package load

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// How the open loop is put to the proof.
const (
	honestRate   = 2000
	honestLength = 20 * time.Second
	honestStall  = time.Second // in every honestEvery, the first honestFirst after its begin
	honestEvery  = 10 * time.Second
	honestFirst  = 4 * time.Second
	honestMargin = 5 * time.Millisecond // what the test's own reading of the instants may be off by
	// lateMost is how late the test's own timer may be for the machine to count as running.
	lateMost       = 100 * time.Millisecond
	honestAttempts = 3
)

// stall is a stretch in which the server did nothing, and the instant at which it had worked through what had queued; from the run's start.
type stall struct{ from, to, drained time.Duration }

// TestOpenLoopIsHonest stalls the server for 1 s in every 10 s. Arrivals of the schedule that fall into a stall wait for its end, and then for those before them; all others
// for next to nothing. So the quantiles follow from the schedule and from instants that the test itself timed: of SIGSTOP and SIGCONT, and when the server's own count of
// commands had caught up with the schedule. A load that waits for a reply before it counts the next request would show a p99 of below 1 ms.
//
// Allowed are 2 %, honestMargin, and the most that the test's own timer was late. A tenth of the arrivals waits, so p90 lies where the waiting begins and is some milliseconds;
// p95 is there as it lies in the middle. The test is made again only where that timer was so late that the machine stood still: what was measured has no say in that.
func TestOpenLoopIsHonest(t *testing.T) {
	for n := 1; ; n++ {
		o, stalls, late := stalled(t)
		if late > lateMost {
			t.Logf("attempt %d does not count: the machine stood still for %s", n, late)
			if n == honestAttempts {
				t.Fatalf("the machine is too busy to time a stall: %d attempts", n)
			}
			continue
		}
		if o.sum.Due != honestRate*20 || o.sum.OK != o.sum.Due {
			t.Fatalf("want all of %d ok: %s", honestRate*20, describe(o))
		}
		t.Logf("stalls %+v; the test's timer was late by at most %s", stalls, late)
		want := scheduled(stalls)
		for _, q := range []float64{0.9, 0.95, 0.99} {
			expected, got := want[int(math.Ceil(q*float64(len(want))))-1], o.sum.Latency.Quantile(q)
			allowed := expected/50 + honestMargin + late
			t.Logf("p%g: %s, by the schedule %s, allowed %s", q*100, got, expected, allowed)
			if off := (got - expected).Abs(); off > allowed {
				t.Errorf("p%g is %s, by the schedule %s: off by %s, allowed %s", q*100, got, expected, off, allowed)
			}
		}
		if service := o.sum.Service.Quantile(0.95); service > honestStall/4 {
			t.Errorf("the service time's p95 is %s: it must not hold the waiting for a connection", service)
		}
		return
	}
}

// stalled runs the load, and tells the stalls and how late the test's timer was at most.
func stalled(t *testing.T) (o *outcome, stalls []stall, late time.Duration) {
	t.Helper()
	server := startRedis(t)
	p := testPlan(server.address())
	p.Client.Connections, p.Client.RequestTimeout = 50, 5*time.Second
	p.Probe, p.Info = plan.Probe{}, 0
	p.Shape = plan.Shape{Rate: honestRate, Duration: honestLength}
	r := prepared(t, p)
	polls := int64(0)
	processed := func() (n int64) {
		_, text, _ := strings.Cut(server.do("INFO", "stats").Text, "total_commands_processed:")
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		polls++
		return n - polls
	}
	before := processed()
	start, wait := inBackground(t, t.Context(), r)
	for at := honestFirst; at < honestLength; at += honestEvery {
		time.Sleep(time.Until(start.Add(at)))
		server.signal(syscall.SIGSTOP)
		one := stall{from: time.Since(start)}
		time.Sleep(honestStall)
		one.to = time.Since(start)
		server.signal(syscall.SIGCONT)
		for {
			done := processed() - before
			if one.drained = time.Since(start); done+1 >= int64(one.drained.Seconds()*honestRate) {
				break
			}
			if one.drained > one.to+2*time.Second {
				t.Fatalf("2 s after the stall %d of %.0f requests were served", done, one.drained.Seconds()*honestRate)
			}
		}
		stalls = append(stalls, one)
	}
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	return o, stalls, o.late
}

// scheduled are the latencies, ascending, that the schedule and the stalls make: what was due from a stall's begin on is served one after the other from its end on.
func scheduled(stalls []stall) []time.Duration {
	all := make([]time.Duration, honestRate*honestLength/time.Second)
	due := func(i int) time.Duration {
		return time.Duration((float64(i) + 0.5) / honestRate * float64(time.Second))
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

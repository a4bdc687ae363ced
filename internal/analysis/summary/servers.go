// Package summary is what a load did in a part of its record: counts, rates and latencies, for how
// long its load generators did not run, what its servers and its ledgers said. It is pure: no
// clock, no I/O. The definitions are in docs/measuring.md, the formulas in the functions' comments.
package summary

import (
	"fmt"
	"math"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// ServerFacts is a summary of Redis' INFO during a run.
type ServerFacts struct {
	Name    string // of the last reading: redis | valkey
	Version string
	Mode    string // standalone | sentinel | cluster

	// millicores: of one server process over its busiest stretch of record.BusyStretch, in a shorter
	// run its mean
	MaxCPU        int64
	MaxMainThread int64 // millicores: the same of its main thread; 0 if the server does not report it
	MaxUsedMemory int64 // bytes
	Evicted       int64 // keys evicted between the first and the last reading
	Rejected      int64 // connections rejected between the first and the last reading
	// how often another process replied at an address: a restart, or another server with the same name
	Restarts int
	Readings int
}

// Servers summarizes the readings of INFO. CPU and counters are differences between readings of the
// same process (RunID) at the same address.
func Servers(s *merged.Series) ServerFacts {
	type process struct{ address, runID string }
	var f ServerFacts
	running := map[string]string{} // address to RunID
	first, last := map[process]record.Server{}, map[process]record.Server{}
	for _, r := range s.Servers() {
		f.Readings++
		f.Name, f.Version, f.Mode = r.Name, r.Version, r.Mode
		f.MaxUsedMemory = max(f.MaxUsedMemory, r.UsedMemory)
		if id, ok := running[r.Address]; ok && id != r.RunID {
			f.Restarts++
		}
		running[r.Address] = r.RunID
		p := process{r.Address, r.RunID}
		if before, ok := last[p]; ok {
			// CONFIG RESETSTAT resets the counters: their values before it are then unknown.
			f.Evicted += max(0, r.EvictedKeys-before.EvictedKeys)
			f.Rejected += max(0, r.RejectedConnections-before.RejectedConnections)
		} else {
			first[p] = r
		}
		f.MaxCPU = max(f.MaxCPU, millicores(float64(r.Busiest.CPU)/1e6, r.Busiest.Length()))
		f.MaxMainThread = max(f.MaxMainThread,
			millicores(float64(r.BusiestMainThread.MainThread)/1e6, r.BusiestMainThread.Length()))
		last[p] = r
	}
	for p, from := range first {
		to := last[p]
		f.MaxCPU = max(f.MaxCPU, millicores(to.CPUSeconds-from.CPUSeconds, time.Duration(to.At-from.At)))
		f.MaxMainThread = max(f.MaxMainThread,
			millicores(to.CPUMainThreadSeconds-from.CPUMainThreadSeconds, time.Duration(to.At-from.At)))
	}
	return f
}

// shortestReading is the shortest time of which CPU usage is computed: over less, the delay of a
// reading would distort it.
const shortestReading = 200 * time.Millisecond

func millicores(cpuSeconds float64, took time.Duration) int64 {
	if took < shortestReading {
		return 0
	}
	return int64(math.Round(1000 * cpuSeconds / took.Seconds()))
}

// ledgerLate is how long ago a ledger must have been read for the lost writes to be known: checks
// are a second apart, and arrive up to a second late.
const ledgerLate = 5 * time.Second

// LiveLedger is what a record shows of lost writes while the load runs.
type LiveLedger struct {
	// acknowledged ledger writes that were found absent, by shard: a lower bound of those that were
	// lost
	Lost []uint64
	// why some ledger was not read in the 5 s before the end of the record; "" = all were
	Unread     string
	Unknowable bool // some ledger will not be read during the load
}

// Total is the number of lost writes of all shards.
func (l *LiveLedger) Total() (sum uint64) {
	for _, n := range l.Lost {
		sum += n
	}
	return sum
}

// LedgerOf returns what was found in the intervals [first, end) of a series.
func LedgerOf(s *merged.Series, first, end int) LiveLedger {
	var l LiveLedger
	for i := first; i < end; i++ {
		for shard, n := range s.At(i).Lost {
			for len(l.Lost) <= shard {
				l.Lost = append(l.Lost, 0)
			}
			l.Lost[shard] += n
		}
	}
	for pod := range s.Pods {
		if !s.IsLost(pod) && !s.IsFinished(pod) {
			l.observe(s.LedgerCheck(pod), s.End())
		}
	}
	return l
}

// observe adds the state of the checks of a pod's ledger at the end of the record.
func (l *LiveLedger) observe(check record.LedgerCheck, end time.Duration) {
	at := time.Duration(check.At)
	switch {
	case check.Unknowable:
		l.Unread, l.Unknowable = check.Failure, true
	case l.Unread != "" || at > 0 && end-at <= ledgerLate:
	case check.Failure != "":
		l.Unread = check.Failure
	case at == 0:
		l.Unread = "it has not been read yet"
	default:
		l.Unread = fmt.Sprintf("it was last read %s before the end of the record",
			(end - at).Round(100*time.Millisecond))
	}
}

// Window is a half-open part of a run, [From, To), counted from the run's start instant.
type Window struct{ From, To time.Duration }

// Latency is figures of a histogram of successful requests.
type Latency struct {
	P50, P90, P95, P99, P999, P9999, Max, Mean time.Duration
	Count                                      uint64
}

// LatencyOf returns the figures of a histogram; they are 0 for an empty one.
func LatencyOf(d *histogram.Distribution) Latency {
	return Latency{
		P50:   d.Quantile(0.50),
		P90:   d.Quantile(0.90),
		P95:   d.Quantile(0.95),
		P99:   d.Quantile(0.99),
		P999:  d.Quantile(0.999),
		P9999: d.Quantile(0.9999),
		Max:   d.Max(),
		Mean:  d.Mean(),
		Count: d.Count(),
	}
}

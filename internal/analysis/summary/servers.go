package summary

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/record"
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

package impact

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// ServerFacts is a summary of Redis' INFO during a run.
type ServerFacts struct {
	Name    string // of the last reading: redis | valkey
	Version string
	Mode    string // standalone | sentinel | cluster

	MaxCPU        int64 // millicores: maximum of one server process between two readings
	MaxMainThread int64 // millicores: the same of its main thread; 0 if the server does not report it
	MaxUsedMemory int64 // bytes
	Evicted       int64 // keys evicted between the first and the last reading
	Rejected      int64 // connections rejected between the first and the last reading
	Restarts      int   // how often another process replied at an address: a restart, or another server with the same name
	Readings      int
}

// shortestReading is the shortest time between two readings from which CPU usage is computed: over less time, the delay of a reading would
// distort it.
const shortestReading = 200 * time.Millisecond

// Servers summarizes the readings of INFO. CPU and counters are differences between readings of the same process (RunID) at the same address.
func Servers(s *record.Series) ServerFacts {
	type process struct{ address, runID string }
	var f ServerFacts
	running := map[string]string{} // address to RunID
	last := map[process]record.Server{}
	for _, r := range s.Servers() {
		f.Readings++
		f.Name, f.Version, f.Mode = r.Name, r.Version, r.Mode
		f.MaxUsedMemory = max(f.MaxUsedMemory, r.UsedMemory)
		if id, ok := running[r.Address]; ok && id != r.RunID {
			f.Restarts++
		}
		running[r.Address] = r.RunID
		p := process{r.Address, r.RunID}
		before, ok := last[p]
		if !ok {
			last[p] = r
			continue
		}
		took := time.Duration(r.At - before.At)
		if took < shortestReading {
			continue // the next reading is compared with before, not with this one
		}
		f.MaxCPU = max(f.MaxCPU, millicores(r.CPUSeconds-before.CPUSeconds, took))
		if r.CPUMainThreadSeconds > 0 && before.CPUMainThreadSeconds > 0 {
			f.MaxMainThread = max(f.MaxMainThread, millicores(r.CPUMainThreadSeconds-before.CPUMainThreadSeconds, took))
		}
		// CONFIG RESETSTAT resets the counters: their values before it are then unknown.
		f.Evicted += max(0, r.EvictedKeys-before.EvictedKeys)
		f.Rejected += max(0, r.RejectedConnections-before.RejectedConnections)
		last[p] = r
	}
	return f
}

func millicores(cpuSeconds float64, took time.Duration) int64 {
	return int64(math.Round(1000 * cpuSeconds / took.Seconds()))
}

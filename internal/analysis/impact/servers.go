package impact

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// ServerFacts is what Redis said of itself during a run.
type ServerFacts struct {
	Name    string // of the last reading: redis | valkey
	Version string
	Mode    string // standalone | sentinel | cluster

	MaxCPU        int64 // millicores: the most that one server process used between two readings
	MaxMainThread int64 // millicores: the same of its main thread; 0 where the server does not tell
	MaxUsedMemory int64 // bytes
	Evicted       int64 // keys evicted while it was watched
	Rejected      int64 // connections rejected while it was watched
	Restarts      int   // how often an address answered with another process: a restart, or another server behind the same name
	Readings      int
}

// shortestReading is the least time between two readings that gives a CPU figure: over less, the reading's own delay would show.
const shortestReading = 200 * time.Millisecond

// Servers sums up the readings of INFO. CPU and counters are differences between readings of the same process (RunID) at the same address.
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
			continue // the next reading is compared with the one before this
		}
		f.MaxCPU = max(f.MaxCPU, millicores(r.CPUSeconds-before.CPUSeconds, took))
		if r.CPUMainThreadSeconds > 0 && before.CPUMainThreadSeconds > 0 {
			f.MaxMainThread = max(f.MaxMainThread, millicores(r.CPUMainThreadSeconds-before.CPUMainThreadSeconds, took))
		}
		// CONFIG RESETSTAT sets the counters back: what came before is unknown then.
		f.Evicted += max(0, r.EvictedKeys-before.EvictedKeys)
		f.Rejected += max(0, r.RejectedConnections-before.RejectedConnections)
		last[p] = r
	}
	return f
}

func millicores(cpuSeconds float64, took time.Duration) int64 {
	return int64(math.Round(1000 * cpuSeconds / took.Seconds()))
}

package usage

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Server is what one server used in the window. Usage and rates are computed from readings of the
// same process, so that a restart does not distort them; the time between two processes does not
// count.
type Server struct {
	Address string
	Role    string // of the last reading: master | slave
	Shard   int    // of a cluster; -1 = none, or unknown

	CPU           CPU     // of the process; it has no limit
	MainThreadCPU CPU     // 0 if the server does not report it
	Memory, RSS   int64   // bytes, the highest
	BytesIn       float64 // per second, from clients, replicas and primaries
	BytesOut      float64
	// IOThreadedReads and IOThreadedWrites are the shares that I/O threads performed, of the reads and
	// writes of connections; -1 = unknown.
	IOThreadedReads, IOThreadedWrites float64
	Slow                              int64         // commands in the slow log; -1 = unknown
	Slowest                           []SlowCommand // the longest first, at most maxSlowest
	Restarts                          int           // how often another process replied at the address
}

// SlowCommand is the longest execution of a command.
type SlowCommand struct {
	Command string // its first word, in upper case
	Took    time.Duration
	At      time.Duration // of the reading that found it, from the start
	Count   int64         // executions that were read from the slow log, at most Slow
}

// maxSlowest bounds Server.Slowest.
const maxSlowest = 5

// Servers returns the use of each server that has two readings of one process in the window: by
// shard, primaries first, then by address.
func Servers(s *merged.Series, w Window) []Server {
	type process struct{ address, runID string }
	last := map[process]record.Server{}
	running := map[string]string{}
	sums := map[string]*serverSum{}
	for _, r := range s.Servers() {
		if !w.contains(r.At) {
			continue
		}
		sum := sums[r.Address]
		if sum == nil {
			sum = &serverSum{slowest: map[string]SlowCommand{}}
			sums[r.Address] = sum
		}
		sum.see(&r)
		w.busiest(&sum.CPU.Max, &r.Busiest, r.Busiest.CPU)
		w.busiest(&sum.MainThreadCPU.Max, &r.BusiestMainThread, r.BusiestMainThread.MainThread)
		if id, ok := running[r.Address]; ok && id != r.RunID {
			sum.Restarts++
		}
		running[r.Address] = r.RunID
		p := process{r.Address, r.RunID}
		before, ok := last[p]
		if ok && time.Duration(r.At-before.At) < shortest {
			sum.slow(&r, w)
			continue // the next reading is compared with before, not with this one
		}
		last[p] = r
		if ok {
			sum.add(&before, &r)
			sum.slow(&r, w)
		}
	}
	var all []Server
	for _, address := range slices.Sorted(maps.Keys(sums)) {
		if sum := sums[address]; sum.cpu.seconds > 0 {
			all = append(all, sum.server(address))
		}
	}
	slices.SortStableFunc(all, func(a, b Server) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Role, b.Role)) // master before slave
	})
	return all
}

// serverSum is the sum of one address's readings.
type serverSum struct {
	Server
	cpu, main, in, out                           mean
	reads, writes, threadedReads, threadedWrites int64
	slowest                                      map[string]SlowCommand
	slowKnown                                    bool
}

// see takes what a reading tells by itself.
func (s *serverSum) see(r *record.Server) {
	s.Role, s.Shard = r.Role, int(r.Shard)-1
	s.Memory, s.RSS = max(s.Memory, r.UsedMemory), max(s.RSS, r.UsedMemoryRSS)
}

// add adds the differences between two readings of one process. A counter that decreased was reset
// (CONFIG RESETSTAT): what it counted meanwhile is unknown, and the time does not count for it.
func (s *serverSum) add(before, now *record.Server) {
	took := time.Duration(now.At - before.At)
	s.cpu.add(max(0, now.CPUSeconds-before.CPUSeconds), took)
	if before.CPUMainThreadSeconds > 0 {
		s.main.add(max(0, now.CPUMainThreadSeconds-before.CPUMainThreadSeconds), took)
	}
	if now.NetInput >= before.NetInput && now.NetOutput >= before.NetOutput {
		s.in.add(float64(now.NetInput-before.NetInput), took)
		s.out.add(float64(now.NetOutput-before.NetOutput), took)
	}
	if now.TotalReads >= before.TotalReads && now.IOThreadedReads >= before.IOThreadedReads {
		s.reads += now.TotalReads - before.TotalReads
		s.threadedReads += now.IOThreadedReads - before.IOThreadedReads
	}
	if now.TotalWrites >= before.TotalWrites && now.IOThreadedWrites >= before.IOThreadedWrites {
		s.writes += now.TotalWrites - before.TotalWrites
		s.threadedWrites += now.IOThreadedWrites - before.IOThreadedWrites
	}
	if before.SlowLog.Total >= 0 && now.SlowLog.Total >= 0 {
		s.slowKnown = true
		s.Slow += max(0, now.SlowLog.Total-before.SlowLog.Total)
	}
}

// slow keeps the longest execution of each command in the window: a reading of a coarsened record
// also has commands from before it.
func (s *serverSum) slow(r *record.Server, w Window) {
	for _, c := range r.SlowLog.Commands {
		if !w.contains(c.At) {
			continue
		}
		one := s.slowest[c.Command]
		took := time.Duration(c.WorstMicros) * time.Microsecond
		if took > one.Took {
			one.Command, one.Took, one.At = c.Command, took, time.Duration(c.At)
		}
		one.Count += c.Count
		s.slowest[c.Command] = one
	}
}

func (s *serverSum) server(address string) Server {
	s.Address = address
	if !s.slowKnown {
		s.Slow = -1
	}
	s.CPU.Mean, s.MainThreadCPU.Mean = s.cpu.value(), s.main.value()
	s.CPU.Max, s.MainThreadCPU.Max = max(s.CPU.Max, s.CPU.Mean), max(s.MainThreadCPU.Max,
		s.MainThreadCPU.Mean)
	s.BytesIn, s.BytesOut = s.in.value(), s.out.value()
	s.IOThreadedReads = share(s.threadedReads, s.reads)
	s.IOThreadedWrites = share(s.threadedWrites, s.writes)
	list := slices.SortedFunc(maps.Values(s.slowest), func(a, b SlowCommand) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Command, b.Command))
	})
	s.Slowest = list[:min(len(list), maxSlowest)]
	return s.Server
}

// share returns part/whole; -1 if the whole is 0.
func share(part, whole int64) float64 {
	if whole == 0 {
		return -1
	}
	return min(1, float64(part)/float64(whole))
}

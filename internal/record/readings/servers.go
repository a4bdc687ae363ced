package readings

import (
	"cmp"
	"slices"
	"time"
	"unsafe"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
)

const (
	// finestServerStep is the first grid on which the readings of servers are thinned; before, all are
	// kept.
	finestServerStep = time.Second
	// coarsestServerStep is the coarsest one: what is left then is needed.
	coarsestServerStep = 24 * time.Hour
	// maxServerReadings bounds how many readings are kept, apart from the first one of each process.
	maxServerReadings = 4096
)

// process is one run of a server.
type process struct{ address, runID string }

func processOf(s *record.Server) process {
	return process{s.Address, s.RunID}
}

// Servers are the readings of the servers of a run, by time, and those servers that could not be
// read. With many servers, or in a long run, it keeps the first reading of each process and then
// its last one per 1 s, 2 s, 4 s and so on, with the slow commands, the highest memory and the
// busiest stretches of this time. The zero value is empty. It is not safe for concurrent use.
type Servers struct {
	list       []record.Server
	unobserved []record.Unobserved // servers without a reading, by address
	step       time.Duration       // the grid of the readings; 0 = all are kept
	first      map[process]int64   // the first reading of each; nil = to be computed
	busy       map[process]*recent
}

// All returns the readings, by time.
func (s *Servers) All() []record.Server {
	return slices.Clone(s.list)
}

// Add adds readings. The cost does not depend on how many there are, apart from those of the same
// time.
func (s *Servers) Add(servers []record.Server) {
	for _, server := range servers {
		findBusiestOfServer(&server, s.busyOf(processOf(&server)))
		s.add(&server)
	}
	if len(s.list) > maxServerReadings+len(s.firstReadings()) && s.step < coarsestServerStep {
		s.Thin(max(finestServerStep, 2*s.step))
	}
}

// add adds a reading, and drops what is not needed of the cell of the grid in which it is.
func (s *Servers) add(server *record.Server) {
	at, _ := slices.BinarySearchFunc(s.list, *server, compareServers)
	s.list = slices.Insert(s.list, at, *server)
	first := s.firstReadings()
	oldFirst, ok := first[processOf(server)]
	if !ok || server.At < oldFirst {
		first[processOf(server)] = server.At
	}
	if s.step == 0 || !ok {
		return
	}
	s.thinCell(processOf(server), server.At)
	if server.At < oldFirst { // the reading that was the first is one like the others
		s.thinCell(processOf(server), oldFirst)
	}
}

// thinCell drops the readings of a process that are not needed in the cell that contains an
// instant.
func (s *Servers) thinCell(p process, at int64) {
	i, _ := slices.BinarySearchFunc(s.list, at/int64(s.step), s.compareCell)
	var own []record.Server
	var positions []int
	for ; i < len(s.list) && s.compareCell(s.list[i], at/int64(s.step)) == 0; i++ {
		if processOf(&s.list[i]) == p {
			own, positions = append(own, s.list[i]), append(positions, i)
		}
	}
	needed := s.fold(own)
	for k := len(own) - 1; k >= 0; k-- {
		if s.list[positions[k]] = own[k]; !needed[k] {
			s.list = slices.Delete(s.list, positions[k], positions[k]+1)
		}
	}
}

func (s *Servers) compareCell(server record.Server, cell int64) int {
	return cmp.Compare(server.At/int64(s.step), cell)
}

// firstReadings returns the instant of the first reading of each process.
func (s *Servers) firstReadings() map[process]int64 {
	if s.first == nil {
		s.first = map[process]int64{}
		for i := range s.list {
			if _, ok := s.first[processOf(&s.list[i])]; !ok {
				s.first[processOf(&s.list[i])] = s.list[i].At
			}
		}
	}
	return s.first
}

// Thin reduces the readings to those that are needed on a coarser grid.
func (s *Servers) Thin(step time.Duration) {
	if step <= s.step {
		return
	}
	s.step = step
	all := slices.Clone(s.list) // a series that is encoded shares the readings
	needed := s.fold(all)
	kept := make([]record.Server, 0, len(all)/2)
	for i := range all {
		if needed[i] {
			kept = append(kept, all[i])
		}
	}
	s.list = slices.Clip(kept)
}

// fold reports which readings of whole cells are needed: the first one of each process, and the
// last one in each cell, to which it adds what stays of those that are not.
func (s *Servers) fold(readings []record.Server) (needed []bool) {
	type in struct {
		process
		cell int64
	}
	cellOf := func(r *record.Server) in { return in{processOf(r), r.At / int64(s.step)} }
	first, last := s.firstReadings(), map[in]int{}
	for i := range readings {
		last[cellOf(&readings[i])] = i
	}
	needed = make([]bool, len(readings))
	for i := range readings {
		r := &readings[i]
		newest := last[cellOf(r)]
		if needed[i] = i == newest || first[processOf(r)] == r.At; !needed[i] {
			keepOf(&readings[newest], r)
		}
	}
	return needed
}

// keepOf adds what stays of an earlier reading of the same process.
func keepOf(s, before *record.Server) {
	if len(before.SlowLog.Commands) > 0 {
		s.SlowLog.Commands = record.MergeSlow(s.SlowLog.Commands, before.SlowLog.Commands)
	}
	s.UsedMemory = max(s.UsedMemory, before.UsedMemory)
	s.UsedMemoryRSS = max(s.UsedMemoryRSS, before.UsedMemoryRSS)
	s.Busiest = busier(s.Busiest, before.Busiest, cpu)
	s.BusiestMainThread = busier(s.BusiestMainThread, before.BusiestMainThread, mainThread)
}

// findBusiestOfServer sets the stretches that end with the reading.
func findBusiestOfServer(s *record.Server, before *recent) {
	stretch := before.add(countersOfServer(s))
	s.Busiest = busier(stretch, record.Busy{}, cpu)
	s.BusiestMainThread = busier(stretch, record.Busy{}, mainThread)
}

func (s *Servers) busyOf(p process) *recent {
	if s.busy == nil {
		s.busy = map[process]*recent{}
	}
	if s.busy[p] == nil {
		s.busy[p] = &recent{}
	}
	return s.busy[p]
}

func compareServers(a, b record.Server) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Address, b.Address),
		cmp.Compare(a.RunID, b.RunID),
		cmp.Compare(a.CommandsProcessed, b.CommandsProcessed), cmp.Compare(a.CPUSeconds, b.CPUSeconds))
}

// maxUnobserved bounds Servers.Unobserved.
const maxUnobserved = 64

// Unobserved returns the servers of which there is no reading, by address, and why: the first
// maxUnobserved that failed.
func (s *Servers) Unobserved() []record.Unobserved {
	return slices.DeleteFunc(slices.Clone(s.unobserved), func(u record.Unobserved) bool {
		return slices.ContainsFunc(s.list, func(r record.Server) bool { return r.Address == u.Address })
	})
}

// AddUnobserved adds what was learned about servers that cannot be read; without a reason, that one
// can be read after all.
func (s *Servers) AddUnobserved(list []record.Unobserved) {
	for _, u := range list {
		at, known := slices.BinarySearchFunc(s.unobserved, u, func(a, b record.Unobserved) int {
			return cmp.Compare(a.Address, b.Address)
		})
		switch {
		case known && u.Reason == "":
			// a series that is encoded shares the list
			s.unobserved = slices.Delete(slices.Clone(s.unobserved), at, at+1)
		case known:
			s.unobserved = slices.Clone(s.unobserved)
			s.unobserved[at] = u
		case u.Reason != "" && len(s.unobserved) < maxUnobserved:
			s.unobserved = slices.Insert(slices.Clip(s.unobserved), at, u)
		}
	}
}

// Copy returns a copy that can be thinned without a change of s.
func (s *Servers) Copy() Servers {
	return Servers{
		list:       s.list,
		unobserved: s.unobserved,
		step:       s.step,
	}
}

// Size is the memory that the readings take, in bytes.
func (s *Servers) Size() int {
	size := cap(s.list) * int(unsafe.Sizeof(record.Server{}))
	for i := range s.list {
		size += cap(s.list[i].SlowLog.Commands) * int(unsafe.Sizeof(record.SlowCommand{}))
	}
	return size
}

// Append writes the readings.
func (s *Servers) Append(dst []byte) []byte {
	dst = codec.AppendInt(dst, int64(s.step))
	dst = record.AppendMergedServers(dst, s.list)
	return record.AppendUnobserved(dst, s.unobserved)
}

// ReadServers reads the output of Servers.Append.
func ReadServers(r *codec.Reader) (s Servers) {
	if s.step = time.Duration(r.Int()); s.step < 0 {
		r.Fail("readings of servers every %v", s.step)
	}
	s.list = record.ReadMergedServers(r)
	s.unobserved = record.ReadUnobserved(r)
	return s
}

// Resume lets the stretches of further readings begin in those that were read.
func (s *Servers) Resume() {
	for i := range s.list {
		server := &s.list[i]
		s.busyOf(processOf(server)).add(countersOfServer(server))
	}
}

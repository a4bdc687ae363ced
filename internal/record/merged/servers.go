package merged

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
)

const (
	// finestServerStep is the first grid on which the readings of servers are thinned; before, all are kept.
	finestServerStep = time.Second
	// coarsestServerStep is the coarsest one: what is left then is needed.
	coarsestServerStep = 24 * time.Hour
	// maxServerReadings bounds how many readings of servers a series keeps, apart from the first one of each process.
	maxServerReadings = 4096
)

// process is one run of a server.
type process struct{ address, runID string }

func processOf(s *record.Server) process { return process{s.Address, s.RunID} }

// Servers returns the readings of the servers, by time. With many servers, or in a long run, the series keeps the first one of each process and then
// its last one per 1 s, 2 s, 4 s and so on (a coarsened series per Step), with the slow commands, the highest memory and the busiest stretches of this
// time.
func (s *Series) Servers() []record.Server { return slices.Clone(s.servers) }

// addServers adds readings. The cost does not depend on how many there are, apart from those of the same time.
func (s *Series) addServers(servers []record.Server) {
	for _, server := range servers {
		findBusiestOfServer(&server, s.busyOf(processOf(&server)))
		s.addServer(&server)
	}
	if len(s.servers) > maxServerReadings+len(s.firstReadings()) && s.serverStep < coarsestServerStep {
		s.thinServers(max(finestServerStep, 2*s.serverStep))
	}
}

// addServer adds a reading, and drops what is not needed of the cell of the grid in which it is.
func (s *Series) addServer(server *record.Server) {
	at, _ := slices.BinarySearchFunc(s.servers, *server, compareServers)
	s.servers = slices.Insert(s.servers, at, *server)
	first := s.firstReadings()
	oldFirst, known := first[processOf(server)]
	if !known || server.At < oldFirst {
		first[processOf(server)] = server.At
	}
	if s.serverStep == 0 || !known {
		return
	}
	s.thinCell(processOf(server), server.At)
	if server.At < oldFirst { // the reading that was the first is one like the others
		s.thinCell(processOf(server), oldFirst)
	}
}

// thinCell drops the readings of a process that are not needed in the cell that contains an instant.
func (s *Series) thinCell(p process, at int64) {
	i, _ := slices.BinarySearchFunc(s.servers, at/int64(s.serverStep), s.compareCell)
	var own []record.Server
	var positions []int
	for ; i < len(s.servers) && s.compareCell(s.servers[i], at/int64(s.serverStep)) == 0; i++ {
		if processOf(&s.servers[i]) == p {
			own, positions = append(own, s.servers[i]), append(positions, i)
		}
	}
	needed := s.fold(own)
	for k := len(own) - 1; k >= 0; k-- {
		if s.servers[positions[k]] = own[k]; !needed[k] {
			s.servers = slices.Delete(s.servers, positions[k], positions[k]+1)
		}
	}
}

func (s *Series) compareCell(server record.Server, cell int64) int {
	return cmp.Compare(server.At/int64(s.serverStep), cell)
}

// firstReadings returns the instant of the first reading of each process.
func (s *Series) firstReadings() map[process]int64 {
	if s.processes == nil {
		s.processes = map[process]int64{}
		for i := range s.servers {
			if _, ok := s.processes[processOf(&s.servers[i])]; !ok {
				s.processes[processOf(&s.servers[i])] = s.servers[i].At
			}
		}
	}
	return s.processes
}

// thinServers reduces the readings to those that are needed on a coarser grid.
func (s *Series) thinServers(step time.Duration) {
	if step <= s.serverStep {
		return
	}
	s.serverStep = step
	all := slices.Clone(s.servers) // a series that is encoded shares the readings
	needed := s.fold(all)
	kept := make([]record.Server, 0, len(all)/2)
	for i := range all {
		if needed[i] {
			kept = append(kept, all[i])
		}
	}
	s.servers = slices.Clip(kept)
}

// fold reports which readings of whole cells are needed: the first one of each process, and the last one in each cell, to which it adds what stays of
// those that are not.
func (s *Series) fold(readings []record.Server) (needed []bool) {
	type in struct {
		process
		cell int64
	}
	cellOf := func(r *record.Server) in { return in{processOf(r), r.At / int64(s.serverStep)} }
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
	s.UsedMemory, s.UsedMemoryRSS = max(s.UsedMemory, before.UsedMemory), max(s.UsedMemoryRSS, before.UsedMemoryRSS)
	s.Busiest = busier(s.Busiest, before.Busiest, cpu)
	s.BusiestMainThread = busier(s.BusiestMainThread, before.BusiestMainThread, mainThread)
}

// findBusiestOfServer sets the stretches that end with the reading.
func findBusiestOfServer(s *record.Server, before *recent) {
	stretch := before.add(countersOfServer(s))
	s.Busiest = busier(stretch, record.Busy{}, cpu)
	s.BusiestMainThread = busier(stretch, record.Busy{}, mainThread)
}

func (s *Series) busyOf(p process) *recent {
	if s.busy == nil {
		s.busy = map[process]*recent{}
	}
	if s.busy[p] == nil {
		s.busy[p] = &recent{}
	}
	return s.busy[p]
}

func compareServers(a, b record.Server) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Address, b.Address), cmp.Compare(a.RunID, b.RunID),
		cmp.Compare(a.CommandsProcessed, b.CommandsProcessed), cmp.Compare(a.CPUSeconds, b.CPUSeconds))
}

// maxUnobserved bounds Series.Unobserved.
const maxUnobserved = 64

// Unobserved returns the servers of which there is no reading, by address, and why: the first maxUnobserved that failed.
func (s *Series) Unobserved() []record.Unobserved {
	return slices.DeleteFunc(slices.Clone(s.unobserved), func(u record.Unobserved) bool {
		return slices.ContainsFunc(s.servers, func(r record.Server) bool { return r.Address == u.Address })
	})
}

func (s *Series) addUnobserved(list []record.Unobserved) {
	for _, u := range list {
		at, known := slices.BinarySearchFunc(s.unobserved, u, func(a, b record.Unobserved) int { return cmp.Compare(a.Address, b.Address) })
		switch {
		case known && u.Reason == "":
			s.unobserved = slices.Delete(slices.Clone(s.unobserved), at, at+1) // a series that is encoded shares the list
		case known:
			s.unobserved = slices.Clone(s.unobserved)
			s.unobserved[at] = u
		case u.Reason != "" && len(s.unobserved) < maxUnobserved:
			s.unobserved = slices.Insert(slices.Clip(s.unobserved), at, u)
		}
	}
}

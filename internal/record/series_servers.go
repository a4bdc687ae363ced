package record

import (
	"cmp"
	"slices"
	"time"
)

const (
	// finestServerStep is the first grid on which the readings of servers are thinned; before, all are kept.
	finestServerStep = time.Second
	// maxServerReadings bounds how many readings of servers a series keeps, apart from the first one of each process.
	maxServerReadings = 4096
)

// process is one run of a server.
type process struct{ address, runID string }

func (s *Server) process() process { return process{s.Address, s.RunID} }

// Servers returns the readings of the servers, by time. With many servers, or in a long run, the series keeps the first one of each process and then
// its last one per 1 s, 2 s, 4 s and so on; a coarsened one at most one per Step.
func (s *Series) Servers() []Server { return slices.Clone(s.servers) }

// addServers adds readings. The cost does not depend on how many there are, apart from those of the same time.
func (s *Series) addServers(servers []Server) {
	for i := range servers {
		s.addServer(&servers[i])
	}
	if len(s.servers) > maxServerReadings+len(s.firstReadings()) {
		s.thinServers(max(finestServerStep, 2*s.serverStep))
	}
}

// addServer adds a reading, unless a later one of the process is in the same cell of the grid; it replaces an earlier one.
func (s *Series) addServer(server *Server) {
	at, _ := slices.BinarySearchFunc(s.servers, *server, compareServers)
	first := s.firstReadings()
	oldFirst, known := first[server.process()]
	newFirst := !known || server.At < oldFirst
	if newFirst {
		first[server.process()] = server.At
	}
	if s.serverStep > 0 && known {
		if later := s.sameCell(at, 1, server); later >= 0 && !newFirst {
			return
		}
		if before := s.sameCell(at-1, -1, server); before >= 0 && s.servers[before].At > oldFirst {
			s.servers = slices.Delete(s.servers, before, before+1)
			at--
		}
	}
	s.servers = slices.Insert(s.servers, at, *server)
	if s.serverStep > 0 && known && newFirst { // the reading that was the first is one like the others
		old := slices.IndexFunc(s.servers, func(o Server) bool { return o.At == oldFirst && o.process() == server.process() })
		if old >= 0 && s.sameCell(old+1, 1, &s.servers[old]) >= 0 {
			s.servers = slices.Delete(s.servers, old, old+1)
		}
	}
}

// sameCell returns the first reading of the same process and cell of the grid as of, from position at on in the given direction; -1 if there is none.
func (s *Series) sameCell(at, direction int, of *Server) int {
	cell := of.At / int64(s.serverStep)
	for ; at >= 0 && at < len(s.servers) && s.servers[at].At/int64(s.serverStep) == cell; at += direction {
		if s.servers[at].process() == of.process() {
			return at
		}
	}
	return -1
}

// firstReadings returns the instant of the first reading of each process.
func (s *Series) firstReadings() map[process]int64 {
	if s.processes == nil {
		s.processes = map[process]int64{}
		for i := range s.servers {
			if _, ok := s.processes[s.servers[i].process()]; !ok {
				s.processes[s.servers[i].process()] = s.servers[i].At
			}
		}
	}
	return s.processes
}

// thinServers reduces the readings to the first one of each process and the last one of each cell of a coarser grid.
func (s *Series) thinServers(step time.Duration) {
	if step <= s.serverStep {
		return
	}
	s.serverStep = step
	first, seen := s.firstReadings(), map[process]int64{}
	kept := make([]Server, 0, len(s.servers))
	for i := len(s.servers) - 1; i >= 0; i-- {
		p, cell := s.servers[i].process(), s.servers[i].At/int64(step)
		if newest, ok := seen[p]; !ok || newest != cell || first[p] == s.servers[i].At {
			kept = append(kept, s.servers[i])
			seen[p] = cell
		}
	}
	slices.Reverse(kept)
	s.servers = slices.Clip(kept)
}

func compareServers(a, b Server) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Address, b.Address), cmp.Compare(a.RunID, b.RunID),
		cmp.Compare(a.CommandsProcessed, b.CommandsProcessed), cmp.Compare(a.CPUSeconds, b.CPUSeconds))
}

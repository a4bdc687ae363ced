package merged

import (
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/readings"
)

// observations are the readings of what there is around the load.
type observations struct {
	servers readings.Servers
	agents  readings.Agents
	podUses readings.PodUses
}

// add adds the readings that came with an interval of a pod.
func (o *observations) add(pod int, iv *record.Interval) {
	o.servers.Add(iv.Servers)
	o.servers.AddUnobserved(iv.Unobserved)
	o.agents.Add(pod, iv.Agents)
}

// resume continues after the readings were decoded.
func (o *observations) resume() {
	o.agents.Resume()
	o.servers.Resume()
}

// size is how many bytes they take.
func (o *observations) size() int {
	return o.servers.Size() + o.agents.Size() + o.podUses.Size()
}

// Servers returns the readings of the servers, by time. With many servers, or in a long run, the
// series keeps the first one of each process and then its last one per 1 s, 2 s, 4 s and so on (a
// coarsened series per Step), with the slow commands, the highest memory and the busiest stretches
// of this time.
func (s *Series) Servers() []record.Server {
	return s.observed.servers.All()
}

// Unobserved returns the servers of which there is no reading, by address, and why: the first 64
// that failed.
func (s *Series) Unobserved() []record.Unobserved {
	return s.observed.servers.Unobserved()
}

// Agents returns the load generators' readings by time, then by pod. Each pod has at most one per
// second: the last one, with the second's minimum round trip, maximum memory and busiest stretches.
// With many pods, or in a long run, the series keeps one per 2 s, 4 s and so on.
func (s *Series) Agents() []record.AgentUse {
	return s.observed.agents.All()
}

// PodUses returns the readings of observed pods by time. In a long run, or with many pods, those of
// a container within 30 s, 60 s and so on are merged.
func (s *Series) PodUses() []record.PodUse {
	return s.observed.podUses.All()
}

// AddPodUses adds readings of observed pods, and reports whether there were any that are new. A
// reading that is there already is ignored, as the metrics API repeats it until it has a newer one.
func (s *Series) AddPodUses(uses []record.PodUse) (added bool) {
	return s.observed.podUses.Add(uses)
}

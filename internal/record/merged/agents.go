package merged

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Agents returns the load generators' readings by time, then by pod. Each pod has at most one per second: the last one, with the second's
// minimum round trip, maximum memory and busiest stretches. With many pods, or in a long run, the series keeps one per 2 s, 4 s and so on.
func (s *Series) Agents() []record.AgentUse {
	var all []record.AgentUse
	for i := range s.pods {
		all = append(all, s.pods[i].agents...)
	}
	slices.SortStableFunc(all, func(a, b record.AgentUse) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod, b.Pod)) })
	return all
}

func (s *Series) addAgents(pod int, agents []record.AgentUse) {
	p := &s.pods[pod]
	for i := range agents {
		before := len(p.agents)
		a := agents[i]
		a.Pod = pod
		findBusiestOfAgent(&a, &p.busy)
		p.agents = keepAgent(p.agents, a, s.agentStep)
		s.agentReadings += len(p.agents) - before
	}
	s.thinAgents()
}

// thinAgents doubles the grid's step until there are at most maxAgentReadings. The result does not depend on the order of the readings.
func (s *Series) thinAgents() {
	for s.agentReadings > maxAgentReadings && s.agentStep < 1<<20*agentStep {
		s.agentStep *= 2
		s.agentReadings = 0
		for i := range s.pods {
			var kept []record.AgentUse
			for _, a := range s.pods[i].agents {
				kept = keepAgent(kept, a, s.agentStep)
			}
			s.pods[i].agents = kept
			s.agentReadings += len(kept)
		}
	}
}

// keepAgent appends a reading, or replaces the last one if it is in the same cell of the grid.
func keepAgent(list []record.AgentUse, a record.AgentUse, step time.Duration) []record.AgentUse {
	last := len(list) - 1
	if last < 0 || list[last].At/int64(step) != a.At/int64(step) {
		return append(list, a)
	}
	if before := &list[last]; a.RoundTrip == 0 || (before.RoundTrip > 0 && before.RoundTrip < a.RoundTrip) {
		a.RoundTrip = before.RoundTrip
	}
	a.Memory = max(a.Memory, list[last].Memory)
	a.Busiest = busier(a.Busiest, list[last].Busiest, cpu)
	a.MostThrottled = busier(a.MostThrottled, list[last].MostThrottled, throttled)
	list[last] = a
	return list
}

// findBusiestOfAgent sets the stretches that end with the reading.
func findBusiestOfAgent(a *record.AgentUse, before *recent) {
	stretch := before.add(countersOfAgent(a))
	a.Busiest = busier(stretch, record.Busy{}, cpu)
	a.MostThrottled = busier(stretch, record.Busy{}, throttled)
}

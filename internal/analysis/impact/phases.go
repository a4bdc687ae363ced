package impact

import (
	"cmp"
	"slices"
	"time"
)

// Milestone is an event between t0 and recovery.
type Milestone struct {
	Name string
	At   time.Duration // from t0
}

// Phase is the part of a recovery that ended with a milestone.
type Phase struct {
	Name     string
	At       time.Duration // its end, from t0
	Duration time.Duration
}

// The milestones of clients, and the name of a phase without a known cause.
const (
	Serves      = "ServerServes" // first success of the probe, which opens new connections
	FirstOK     = "FirstSuccess" // first success of the load, through its own connections
	Sustained   = "Recovered"    // sustained recovery
	Unexplained = "Unexplained"
)

// explained is the longest time between the last milestone of servers and cluster and the probe's first success that is not reported as
// Unexplained: it covers a few of the probe's requests, and the interval at which the servers are polled.
const explained = 150 * time.Millisecond

// Phases divides [0, recovery] at the milestones: each phase ends with the milestone of its name, and their durations add up to recovery.
// The time between the last milestone of servers and cluster and the probe's first success is Unexplained if it is longer than explained.
// Milestones before t0 and after recovery are ignored.
func Phases(milestones []Milestone, recovery time.Duration) []Phase {
	within := slices.DeleteFunc(slices.Clone(milestones), func(m Milestone) bool { return m.At < 0 || m.At > recovery || m.Name == Sustained })
	slices.SortStableFunc(within, func(a, b Milestone) int { return cmp.Compare(a.At, b.At) })
	within = append(within, Milestone{Sustained, recovery})
	var phases []Phase
	var last time.Duration
	for _, m := range within {
		length := m.At - last
		if m.Name == Serves && length > explained {
			phases = append(phases, Phase{Unexplained, m.At, length})
			length = 0
		}
		phases = append(phases, Phase{m.Name, m.At, length})
		last = m.At
	}
	return phases
}

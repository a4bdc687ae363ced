package impact

import (
	"cmp"
	"slices"
	"time"
)

// Milestone is something that happened on the way from t0 to recovery.
type Milestone struct {
	Name string
	At   time.Duration // from t0
}

// Phase is the stretch of a recovery that ended with a milestone.
type Phase struct {
	Name     string
	At       time.Duration // its end, from t0
	Duration time.Duration
}

// The milestones of clients, and the stretch that nothing accounts for.
const (
	Serves      = "ServerServes" // first success of the probe, which dials afresh
	FirstOK     = "FirstSuccess" // first success of the load, through its own connections
	Sustained   = "Recovered"    // 90 % of the baseline, and it holds
	Unexplained = "Unexplained"
)

// explained is how soon after the last thing that servers and cluster showed the probe's success may come to need no explanation: a few of
// its requests, and the pace at which servers are looked at.
const explained = 150 * time.Millisecond

// Phases cuts [0, recovery] at the milestones: each phase ends with the one that it is named after, and their durations add up to recovery.
// What lies between the last thing that servers and cluster showed and the probe's first success is Unexplained where it is longer than explained.
// Milestones before t0 and after recovery are no part of it.
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

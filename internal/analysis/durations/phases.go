package durations

import (
	"cmp"
	"slices"
	"time"
)

// Milestone is an event between t0 and recovery.
type Milestone struct {
	Name string
	At   time.Duration // from t0
	// By how much earlier and later the event can have been: Kubernetes' own timestamps are in whole
	// seconds, servers are polled.
	Sooner, Later time.Duration
}

// Since is the milestone after so long since the injection. The injection's own uncertainty is
// taken off.
func (injection Milestone) Since(name string, d Bounded) Milestone {
	return Milestone{
		name, d.Value, max(0, d.Value-d.AtLeast-injection.Later),
		max(0, d.AtMost-d.Value-injection.Sooner),
	}
}

// Phase is the part of a recovery that ended with a milestone.
type Phase struct {
	Name     string
	At       time.Duration // its end, from t0
	Duration Bounded
}

// The milestones of clients, and the name of a phase without a known cause.
const (
	Serves      = "ServerServes" // first success of the probe, which opens new connections
	FirstOK     = "FirstSuccess" // first success of the load, through its own connections
	Sustained   = "Recovered"    // sustained recovery
	Unexplained = "Unexplained"
)

// explained is the longest time between the last milestone of servers and cluster and the probe's
// first success that is not reported as Unexplained: it covers a few of the probe's requests, and
// the interval at which the servers are polled.
const explained = 150 * time.Millisecond

// Phases divides the time from the injection to recovery at the milestones: each phase ends with
// the milestone of its name, and their durations add up to recovery.
// The time between the last milestone of servers and cluster and the probe's first success is
// Unexplained if it is longer than explained.
// Milestones before t0 and after recovery are ignored.
//
// recovery contains the uncertainty of the injection, the milestones do not. A phase is as
// uncertain as its two ends.
func Phases(injection Milestone, milestones []Milestone, recovery Bounded) []Phase {
	whole := recovery.Value
	list := slices.DeleteFunc(slices.Clone(milestones), func(m Milestone) bool {
		return m.At < 0 ||
			m.At > whole || m.Name == Sustained
	})
	slices.SortStableFunc(list, func(a, b Milestone) int { return cmp.Compare(a.At, b.At) })
	list = append(list, injection.Since(Sustained, recovery))
	var phases []Phase
	last := injection
	for _, m := range list {
		length := Within(m.At-last.At, m.At-last.At-m.Sooner-last.Later, m.At-last.At+m.Later+last.Sooner)
		if m.Name == Serves && length.Value > explained {
			phases = append(phases, Phase{Unexplained, m.At, length})
			length = Bounded{}
		}
		phases = append(phases, Phase{m.Name, m.At, length})
		last = m
	}
	return phases
}

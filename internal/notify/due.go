package notify

import (
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Bounds of the attempts to send a notification: the waits double from the first to the longest
// one.
const (
	firstWait   = 10 * time.Second
	longestWait = 10 * time.Minute
	// MostAttempts is how often a notification is tried, in about two hours.
	MostAttempts = 18
)

// State is what people are notified of, if it changes.
type State struct {
	Run       string           // the last run of the schedule
	Verdict   v1alpha1.Verdict // "" = it could not complete
	Regressed bool
}

// Same reports whether nothing has changed but the run.
func (s State) Same(other State) bool {
	return s.Verdict == other.Verdict && s.Regressed == other.Regressed
}

// StateOf is the state of a schedule; false before its first run has ended. Where it is unknown
// whether something regressed, it is as in the last notification: a repetition that is under way,
// or a run that was not compared, is no recovery.
func StateOf(history []v1alpha1.ScheduledRun, regressed *bool, last *State) (State, bool) {
	if len(history) == 0 {
		return State{}, false
	}
	run := history[len(history)-1]
	s := State{Run: run.Name, Verdict: run.Verdict}
	switch {
	case regressed != nil:
		s.Regressed = *regressed
	case last != nil:
		s.Regressed = last.Regressed
	}
	return s, true
}

// Attempt is how often it was tried in vain to notify of a run.
type Attempt struct {
	Run   string
	Count int
	At    time.Time // of the last one
}

// Due reports when to try to notify of a state: a time that has passed is at once, a zero one is
// never. last is the state of the last notification; nil = there was none. tried are the attempts
// so far; nil = none.
func Due(now State, last *State, tried *Attempt, at time.Time) time.Time {
	switch {
	case last != nil && last.Same(now):
		return time.Time{}
	case tried == nil || tried.Run != now.Run:
		return at
	case tried.Count >= MostAttempts:
		return time.Time{}
	}
	return tried.At.Add(WaitAfter(tried.Count))
}

// WaitAfter is the wait after so many failed attempts, from 1.
func WaitAfter(count int) time.Duration {
	wait := firstWait
	for range count - 1 {
		if wait *= 2; wait >= longestWait {
			return longestWait
		}
	}
	return wait
}

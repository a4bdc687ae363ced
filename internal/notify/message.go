// Package notify tells people by a webhook that the verdict of a schedule has changed: when that is
// due, what is said, and how it is sent.
package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Message is what a notification says, and what templates can use.
type Message struct {
	// Namespace and Schedule are the schedule, Run is the RedisExperiment of the run.
	Namespace, Schedule, Run string
	// Verdict of the run: Pass, Fail, Inconclusive, or None if it could not complete.
	Verdict string
	// Before is that of the run of the last notification; "" if this is the first one.
	Before string
	// Change is what has changed: First, Verdict, Regressed or Recovered; of a verdict and a
	// regression, the latter.
	Change string
	// Regressed is whether a figure is worse than it was.
	Regressed bool
	// Why is why the run could not complete, or which figures have regressed, since which run; "" =
	// there is nothing to say.
	Why string
	// Start is when the run began, in RFC 3339.
	Start string
	// Text is all of that in sentences.
	Text string
}

// NewMessage says of a run what has changed since the last notification.
func NewMessage(namespace, schedule string, last *State, now State, why, start string) Message {
	m := Message{
		Namespace: namespace,
		Schedule:  schedule,
		Run:       now.Run,
		Verdict:   word(now.Verdict),
		Regressed: now.Regressed,
		Why:       why,
		Start:     start,
		Change:    "Verdict",
	}
	if last != nil {
		m.Before = word(last.Verdict)
	}
	switch {
	case last == nil:
		m.Change = "First"
	case now.Regressed && !last.Regressed:
		m.Change = "Regressed"
	case !now.Regressed && last.Regressed:
		m.Change = "Recovered"
	}
	m.Text = m.sentences()
	return m
}

// sentences are one line on what has changed, one on why, and one on how to see more.
func (m Message) sentences() string {
	of := m.Namespace + "/" + m.Schedule
	var lines []string
	switch m.Change {
	case "First":
		lines = append(lines,
			fmt.Sprintf("%s: %s. This is the first notification; the next one follows when that changes.",
				of, m.verdict()))
	case "Regressed":
		lines = append(lines, fmt.Sprintf("%s has regressed: %s.", of, m.verdict()))
	case "Recovered":
		lines = append(lines, fmt.Sprintf("%s has recovered: %s.", of, m.verdict()))
	default:
		lines = append(lines, fmt.Sprintf("%s: %s.", of, m.verdict()))
	}
	if m.Why != "" {
		lines = append(lines, m.Why)
	}
	return strings.Join(append(lines,
		fmt.Sprintf("kubectl -n %s describe rexp %s", m.Namespace, m.Run)), "\n")
}

func (m Message) verdict() string {
	text := "the verdict of run " + m.Run + " is " + m.Verdict
	if m.Verdict == none {
		text = "run " + m.Run + " could not complete"
	}
	if m.Before != "" && m.Before != m.Verdict {
		text += ", after " + m.Before
	}
	return text
}

// none is the verdict of a run without one.
const none = "None"

func word(v v1alpha1.Verdict) string {
	if v == "" {
		return none
	}
	return string(v)
}

// example is a message with a word in every text, for checks of templates.
func example(text string) Message {
	return Message{
		Namespace: text,
		Schedule:  text,
		Run:       text,
		Verdict:   text,
		Before:    text,
		Change:    text,
		Regressed: true,
		Why:       text,
		Start:     text,
		Text:      text,
	}
}

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

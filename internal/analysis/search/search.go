// Package search finds the highest rate that meets a test's objectives. Each trial doubles the rate
// until one misses the objectives. Then it bisects between the highest rate that met them and the
// lowest that missed them, and confirms the rate that it found. It is pure: its input is the trials
// so far, its output the next one, so that the process that runs a search can restart between any
// two trials.
package search

import (
	"fmt"
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
)

// Spec is a planned search, and decides on its trials.
type Spec plan.Search

// Limits of a search.
const (
	// decisive is how often a rate must miss to count as missed, and the final rate must meet the
	// objectives: two of three trials. One stall of a machine must not limit a search, and one lucky
	// trial must not be its result.
	decisive = 2
	// MaxTrials limits a search whose objectives are met or missed by chance.
	MaxTrials = 64
	// descents is how often the first rate is halved if no rate has met the objectives.
	descents = 6
)

// Trial is one rate that was tried, or is being tried.
type Trial struct {
	Rate   float64
	At     time.Duration // when the rate begins, since the load's start
	Judged bool
	Met    bool   // only when Judged
	Why    string // the missed objective
}

// Judgement is the evaluation of a trial's window. A Void one is not significant: the trial is
// discarded.
type Judgement struct {
	Met, Void bool
	Why       string
}

// Next is the next step of a search.
type Next struct {
	Rate    float64 // to try; 0 = none: a trial is in progress, or the search is over
	Over    bool    // there are no more trials
	Done    bool    // the search is over and has reached Spec.Precision
	Found   float64 // highest rate that met the objectives so far; 0 = none yet
	Message string  // progress of the search, human-readable
}

// Next returns the step after the given trials.
func (s Spec) Next(trials []Trial) Next {
	met, missed := bounds(trials)
	n := Next{Found: met}
	last := len(trials) - 1
	switch {
	case last < 0:
		return n.try(s.From, "trying the first rate")
	case !trials[last].Judged:
		n.Message = fmt.Sprintf("trial %d: %.0f requests/s; %s", last+1, trials[last].Rate,
			between(met, missed))
		return n
	case len(trials) >= MaxTrials:
		n.Over = true
		n.Message = fmt.Sprintf("given up after %d trials; %s", MaxTrials, between(met, missed))
		return n
	case !trials[last].Met && count(trials, trials[last].Rate, false) < decisive:
		return n.try(trials[last].Rate, "retrying a rate that missed once")
	case math.IsInf(missed, 1):
		return s.climb(n, trials, met, missed)
	case met == 0:
		return s.descend(n, met, missed, trials[last].Why)
	}
	return s.bisect(n, trials, met, missed)
}

func (s Spec) climb(n Next, trials []Trial, met, missed float64) Next {
	if met >= s.To {
		return n.confirm(trials,
			fmt.Sprintf("%.0f requests/s, the highest rate of the range, meets the objectives", met))
	}
	return n.try(min(2*met, s.To), "climbing; "+between(met, missed))
}

func (s Spec) descend(n Next, met, missed float64, why string) Next {
	if missed <= 1 || missed <= s.From/(1<<descents) {
		return n.done(fmt.Sprintf("not even %.0f requests/s meet the objectives: %s", missed, why))
	}
	return n.try(max(1, math.Round(missed/2)), "descending; "+between(met, missed))
}

func (s Spec) bisect(n Next, trials []Trial, met, missed float64) Next {
	middle := math.Round(math.Sqrt(met * missed))
	if missed <= met*(1+s.Precision) || middle <= met || middle >= missed {
		return n.confirm(trials, fmt.Sprintf("%.0f requests/s meet the objectives, %.0f do not", met,
			missed))
	}
	return n.try(middle, "bisecting; "+between(met, missed))
}

func (n Next) try(rate float64, message string) Next {
	n.Rate, n.Message = rate, message
	return n
}

// CutOff is the message of a search whose next trial would end after the load.
func (n Next) CutOff() string {
	return "cut off by the load's duration: the next trial would not end in time; " + n.Message
}

// confirm tries the found rate again until it has met the objectives in two of three trials, and
// then ends the search.
func (n Next) confirm(trials []Trial, message string) Next {
	if count(trials, n.Found, true) < decisive {
		return n.try(n.Found, fmt.Sprintf("confirming %.0f", n.Found))
	}
	return n.done(message)
}

func (n Next) done(message string) Next {
	n.Over, n.Done, n.Message = true, true, message
	return n
}

func between(met, missed float64) string {
	switch {
	case met == 0 && math.IsInf(missed, 1):
		return "no rate is evaluated yet"
	case met == 0:
		return fmt.Sprintf("the highest rate is below %.0f", missed)
	case math.IsInf(missed, 1):
		return fmt.Sprintf("%.0f meets the objectives", met)
	}
	return fmt.Sprintf("the highest rate is between %.0f and %.0f", met, missed)
}

// Judge evaluates the trial in progress with judge, once the record is complete up to the end of
// its window; known is the end of the complete record. It returns the trials, without this one if
// it is void, and whether it was evaluated.
func (s Spec) Judge(
	trials []Trial, known time.Duration, judge func(t Trial, from, to time.Duration) Judgement,
) ([]Trial, bool) {
	t, ok := InProgress(trials)
	if !ok {
		return trials, false
	}
	from, to := s.Window(t)
	if known < to {
		return trials, false
	}
	j, last := judge(t, from, to), len(trials)-1
	if j.Void {
		return trials[:last], true
	}
	t.Judged, t.Met, t.Why = true, j.Met, j.Why
	trials[last] = t
	return trials, true
}

// InProgress returns the trial that is not evaluated yet; ok is false if there is none.
func InProgress(trials []Trial) (t Trial, ok bool) {
	last := len(trials) - 1
	if last < 0 || trials[last].Judged {
		return t, false
	}
	return trials[last], true
}

// Elsewhere returns the time outside of the windows at the limit: those of the lowest rate that
// counts as missed, or if none does, of the best rate.
func (s Spec) Elsewhere(trials []Trial) (windows []summary.Window) {
	_, missed := bounds(trials)
	if math.IsInf(missed, 1) {
		if best, ok := Best(trials); ok {
			missed = best.Rate
		}
	}
	at := time.Duration(0)
	for _, t := range trials {
		if t.Judged && t.Rate == missed {
			from, to := s.Window(t)
			windows = append(windows, summary.Window{From: at, To: from})
			at = to
		}
	}
	return append(windows, summary.Window{From: at, To: math.MaxInt64})
}

// Window returns the evaluated part of a trial, since the load's start.
func (s Spec) Window(t Trial) (from, to time.Duration) {
	return plan.Search(s).Window(t.Rate, t.At)
}

// bounds returns the highest rate that met the objectives and does not count as missed, 0 if there
// is none, and the lowest above it that counts as missed, +Inf if none does.
func bounds(trials []Trial) (met, missed float64) {
	missed = math.Inf(1)
	for _, t := range trials {
		if t.Judged && t.Met && count(trials, t.Rate, false) < decisive {
			met = max(met, t.Rate)
		}
	}
	for _, t := range trials {
		if t.Judged && !t.Met && t.Rate > met && count(trials, t.Rate, false) >= decisive {
			missed = min(missed, t.Rate)
		}
	}
	return met, missed
}

// count counts the evaluated trials of a rate that met the objectives, or missed them.
func count(trials []Trial, rate float64, met bool) (n int) {
	for _, t := range trials {
		if t.Judged && t.Rate == rate && t.Met == met {
			n++
		}
	}
	return n
}

// Best returns the trial whose figures are those of the search: the last one that met the
// objectives at the rate found; if there is none, the last one that was evaluated. ok is false if
// none was evaluated.
func Best(trials []Trial) (best Trial, ok bool) {
	found, _ := bounds(trials)
	for _, t := range trials {
		if t.Judged && (found == 0 || t.Met && t.Rate == found) {
			best, ok = t, true
		}
	}
	return best, ok
}

// Lead is the time between the decision on a trial and its begin, in which the rate is sent to all
// pods.
const Lead = time.Second

// Begin returns when a trial that is decided at now begins: at the start of a recording interval,
// so that its window has whole intervals.
func Begin(now, grid time.Duration) time.Duration {
	return (now + Lead + grid - 1).Truncate(grid)
}

// Package search looks for the highest rate that still meets a test's objectives. It climbs: each trial doubles the rate, until one misses.
// Then it bisects, between the highest rate that met the objectives and the lowest that missed them. It is pure: what was tried goes in,
// what to try next comes out, so that whoever conducts a search may die between any two trials.
package search

import (
	"fmt"
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
)

// Spec says where to look, and how closely.
type Spec struct {
	From      float64       `json:"from"`      // requests/s over all pods: the first trial
	To        float64       `json:"to"`        // no trial goes above
	Precision float64       `json:"precision"` // ends when the lowest rate that missed is at most this share above the highest that met
	Settle    time.Duration `json:"settle"`    // of each trial: its beginning, which is not judged
	Trial     time.Duration `json:"trial"`     // judged part of each trial, at least
	Requests  float64       `json:"requests"`  // requests in the judged part, at least: quantiles and shares are made of some
}

// Limits of a search.
const (
	// TriesPerRate is how often a rate must miss until it counts: one stall of a machine must not cap a search.
	TriesPerRate = 2
	// MaxTrials bounds a search whose objectives are met and missed by chance.
	MaxTrials = 64
	// descents is how often the first rate is halved when nothing was met yet.
	descents = 6
)

// Trial is one rate that was, or is, offered.
type Trial struct {
	Rate   float64
	At     time.Duration // since the load's start: from then on the rate is offered
	Judged bool
	Met    bool   // only when Judged
	Why    string // what was missed
}

// Judgement is what a trial's window shows. Void: nothing, so that the trial is none.
type Judgement struct {
	Met, Void bool
	Why       string
}

// Next is what to do after some trials.
type Next struct {
	Rate    float64 // to try; 0 = nothing: wait for the trial under way, or the search is over
	Over    bool    // nothing is left to try
	Done    bool    // and the answer is as precise as was asked for
	Found   float64 // highest rate that met the objectives so far; 0 = none yet
	Message string  // how the search stands, for people
}

// Next decides by what was tried.
func (s Spec) Next(trials []Trial) Next {
	met, missed := bounds(trials)
	n := Next{Found: met}
	last := len(trials) - 1
	switch {
	case last < 0:
		return n.try(s.From, "trying the first rate")
	case !trials[last].Judged:
		n.Message = fmt.Sprintf("trial %d: %.0f requests/s; %s", last+1, trials[last].Rate, between(met, missed))
		return n
	case len(trials) >= MaxTrials:
		n.Over, n.Message = true, fmt.Sprintf("given up after %d trials; %s", MaxTrials, between(met, missed))
		return n
	case !trials[last].Met && tries(trials, trials[last].Rate) < TriesPerRate:
		return n.try(trials[last].Rate, "trying a rate again that was missed once")
	case math.IsInf(missed, 1):
		return s.climb(n, met, missed)
	case met == 0:
		return s.descend(n, met, missed, trials[last].Why)
	}
	return s.bisect(n, met, missed)
}

func (s Spec) climb(n Next, met, missed float64) Next {
	if met >= s.To {
		return n.done(fmt.Sprintf("%.0f requests/s, the highest rate asked for, meets the objectives", met))
	}
	return n.try(min(2*met, s.To), "climbing; "+between(met, missed))
}

func (s Spec) descend(n Next, met, missed float64, why string) Next {
	if missed <= 1 || missed <= s.From/(1<<descents) {
		return n.done(fmt.Sprintf("not even %.0f requests/s meet the objectives: %s", missed, why))
	}
	return n.try(max(1, math.Round(missed/2)), "descending; "+between(met, missed))
}

func (s Spec) bisect(n Next, met, missed float64) Next {
	middle := math.Round(math.Sqrt(met * missed))
	if missed <= met*(1+s.Precision) || middle <= met || middle >= missed {
		return n.done(fmt.Sprintf("%.0f requests/s meet the objectives, %.0f do not", met, missed))
	}
	return n.try(middle, "bisecting; "+between(met, missed))
}

func (n Next) try(rate float64, message string) Next {
	n.Rate, n.Message = rate, message
	return n
}

func (n Next) done(message string) Next {
	n.Over, n.Done, n.Message = true, true, message
	return n
}

func between(met, missed float64) string {
	switch {
	case met == 0 && math.IsInf(missed, 1):
		return "no rate is judged yet"
	case met == 0:
		return fmt.Sprintf("the answer lies below %.0f", missed)
	case math.IsInf(missed, 1):
		return fmt.Sprintf("%.0f meets the objectives", met)
	}
	return fmt.Sprintf("the answer lies between %.0f and %.0f", met, missed)
}

// Judge judges the trial under way by judge, once the record is complete up to known. It returns the trials, without this one where it is void,
// and whether it judged.
func (s Spec) Judge(trials []Trial, known time.Duration, judge func(t Trial, from, to time.Duration) Judgement) ([]Trial, bool) {
	last := len(trials) - 1
	if last < 0 || trials[last].Judged {
		return trials, false
	}
	t := &trials[last]
	from, to := s.Window(*t)
	if known < to {
		return trials, false
	}
	j := judge(*t, from, to)
	if j.Void {
		return trials[:last], true
	}
	t.Judged, t.Met, t.Why = true, j.Met, j.Why
	return trials, true
}

// Elsewhere is all but where the limit shows: the windows of the lowest rate that counts as missed, or where none does, that of the best trial.
func (s Spec) Elsewhere(trials []Trial) (windows []impact.Window) {
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
			windows = append(windows, impact.Window{From: at, To: from})
			at = to
		}
	}
	return append(windows, impact.Window{From: at, To: math.MaxInt64})
}

// Window is the part of a trial that is judged, since the load's start.
func (s Spec) Window(t Trial) (from, to time.Duration) {
	length := s.Trial
	if t.Rate > 0 {
		length = max(length, time.Duration(math.Ceil(s.Requests/t.Rate))*time.Second)
	}
	return t.At + s.Settle, t.At + s.Settle + length
}

// bounds are the highest rate that met the objectives, 0 where none did, and the lowest above it that counts as missed, +Inf where none does.
func bounds(trials []Trial) (met, missed float64) {
	missed = math.Inf(1)
	for _, t := range trials {
		if t.Judged && t.Met {
			met = max(met, t.Rate)
		}
	}
	for _, t := range trials {
		if t.Judged && !t.Met && t.Rate > met && tries(trials, t.Rate) >= TriesPerRate {
			missed = min(missed, t.Rate)
		}
	}
	return met, missed
}

// tries counts the judged trials of a rate.
func tries(trials []Trial, rate float64) (n int) {
	for _, t := range trials {
		if t.Judged && t.Rate == rate {
			n++
		}
	}
	return n
}

// Best is the trial whose figures are the search's: of the highest rate that met the objectives the last that did; where none
// did, the last that was judged. ok is false where none was judged.
func Best(trials []Trial) (best Trial, ok bool) {
	for _, t := range trials {
		if t.Judged && (!ok || t.Met && t.Rate >= best.Rate || t.Met && !best.Met || !t.Met && !best.Met) {
			best, ok = t, true
		}
	}
	return best, ok
}

// Lead is how far ahead of its decision a trial begins: time to tell all pods.
const Lead = time.Second

// Begin is when a trial that is decided at now begins: on the grid of the recording, so that its window has whole intervals.
func Begin(now, grid time.Duration) time.Duration {
	return (now + Lead + grid - 1).Truncate(grid)
}

// Package anomaly finds in a record what no known fault explains: dips of the throughput, and the
// first sign that something broke Redis. It is pure: no clock, no I/O.
package anomaly

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
)

// Anomaly is a dip of the throughput outside of all faults.
type Anomaly struct {
	At      time.Duration // its begin, from the start of the run, to the second
	Length  time.Duration // whole seconds, at least 2
	MinRate float64       // successes/s in its deepest second
	Usual   float64       // successes/s: the running median before the dip
	// of that second below the usual rate, in [0, 1]: 1 - MinRate/Usual, unless the planned rate fell
	// meanwhile
	Depth float64
}

const (
	anomalyShare  = 0.70 // of the running median
	anomalyLength = 2    // seconds
	anomalyMemory = 30   // seconds of the running median
	anomalyLearn  = 5    // seconds of the running median before any dip counts
)

// Anomalies returns the times from measuredFrom on and outside of exclude in which the 1 s success
// rate is below 70 % of the running median for 2 s or more. The seconds are adjacent from
// measuredFrom on. The running median is that of the up to 30 such seconds before, dips included,
// so that a new level that lasts is no anomaly. If pods are missing, rates are scaled to all of
// them: a lost pod is not a dip of Redis. exclude are the faults, each from its injection to its
// recovery.
//
// A planned change of the load is no anomaly: where the planned rate falls, the running median
// falls with it; where the number of users changes, it begins anew. Nothing after the planned end
// is one.
func Anomalies(
	s *merged.Series, measuredFrom time.Duration, asked plan.Planned, exclude []summary.Window,
) []Anomaly {
	d := dipDetector{curve: throughput.CurveOf(s), asked: asked}
	c := d.curve
	for i := c.Ceil(measuredFrom); i+c.Wide <= c.PlannedEnd(asked); i += c.Wide {
		pods := s.At(i).Pods
		for k := i; k < i+c.Wide; k++ {
			pods = min(pods, s.At(k).Pods)
		}
		if pods == 0 || overlaps(exclude, summary.Window{From: c.At(i), To: c.At(i + c.Wide)}) {
			d.end()
			continue
		}
		d.plan(summary.Window{From: c.At(i), To: c.At(i + c.Wide)})
		d.add(c.At(i), c.WindowRate(i)*float64(s.Pods)/float64(pods))
	}
	d.end()
	return d.found
}

// dipDetector finds anomalies in the rates of consecutive windows.
type dipDetector struct {
	curve    *throughput.Curve
	asked    plan.Planned
	level    float64   // the planned rate or users of the current window; 1 if they are constant
	recent   []float64 // the rates of the running median
	shares   []float64 // the same, each divided by its level
	dip      *Anomaly  // the current one, of any length; nil = none
	dipLevel float64   // the level at its begin
	found    []Anomaly
}

// plan sets the planned level of the next window.
func (d *dipDetector) plan(w summary.Window) {
	before := d.level
	d.level = 1
	if d.asked.Mean == nil {
		return
	}
	d.level = d.asked.Mean(w.From, w.To)
	changed := math.Abs(d.level-before) > throughput.ChangedShare*before
	if d.level <= 0 || changed && !d.asked.Rate {
		d.end()
		d.recent, d.shares = nil, nil
	}
}

// usual is the rate that the windows before imply for the current one: never more than they had, as
// a higher planned rate may be too high.
func (d *dipDetector) usual() float64 {
	return min(throughput.Median(d.recent), d.level*throughput.Median(d.shares))
}

// add evaluates the window that begins at at.
func (d *dipDetector) add(at time.Duration, rate float64) {
	usual := d.usual()
	if d.dip != nil {
		usual = d.dip.Usual * min(1, d.level/d.dipLevel)
	}
	if len(d.recent) >= anomalyLearn && rate < anomalyShare*usual {
		d.extend(at, rate, usual)
	} else {
		d.end()
	}
	if d.level <= 0 {
		return
	}
	if d.recent, d.shares = append(d.recent, rate),
		append(d.shares, rate/d.level); len(d.recent) > anomalyMemory {
		d.recent, d.shares = d.recent[1:], d.shares[1:]
	}
}

// extend adds a window to the current dip, or begins one with it.
func (d *dipDetector) extend(at time.Duration, rate, usual float64) {
	if d.dip == nil {
		d.dip, d.dipLevel = &Anomaly{
			At:      at,
			MinRate: rate,
			Usual:   usual,
		}, d.level
	}
	d.dip.Length += d.curve.Width()
	if depth := 1 - rate/usual; depth > d.dip.Depth {
		d.dip.MinRate, d.dip.Depth = rate, depth
	}
	// A level that has lasted for the length of the running median is the new usual one.
	if d.dip.Length >= anomalyMemory*throughput.Second {
		d.end()
	}
}

// end ends the current dip, and keeps it if it was long enough.
func (d *dipDetector) end() {
	if d.dip != nil && d.dip.Length >= anomalyLength*d.curve.Width() {
		d.found = append(d.found, *d.dip)
	}
	d.dip = nil
}

func overlaps(list []summary.Window, w summary.Window) bool {
	for _, e := range list {
		if e.From < w.To && w.From < e.To {
			return true
		}
	}
	return false
}

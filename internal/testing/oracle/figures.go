package oracle

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// Figure is what is reported, with its bounds: durations in seconds. A figure that is not Known is
// not claimed.
type Figure struct {
	Value, AtLeast, AtMost float64
	Known                  bool
}

// Figures are the reported figures by their names, and the doubts about those of the fault and
// those of the load.
type Figures struct {
	Of              map[string]Figure
	Fault, LoadTest []impact.Doubt
}

// Doubted reports whether a figure is doubted.
func (f *Figures) Doubted(name string) bool {
	switch name {
	case Throughput, ErrorRate:
		return len(f.LoadTest) > 0
	}
	return len(f.Fault) > 0
}

func exactly(v float64) Figure {
	return Figure{v, v, v, true}
}

func bounded(b durations.Bounded) Figure {
	if !b.Known() {
		return Figure{}
	}
	return Figure{b.Value.Seconds(), b.AtLeast.Seconds(), b.AtMost.Seconds(), true}
}

// Analyze has the analysis compute its figures from what was recorded.
func Analyze(h *History, p *Played) *Figures {
	f := &Figures{Of: map[string]Figure{}}
	at := impact.Fault{At: h.Baseline, Deadline: h.Observed - h.Hold - time.Second}
	if h.SeenAt > 0 {
		at.SeenAt = h.Baseline + h.SeenAt
	}
	options := impact.Options{
		BaselineWindow:  h.Baseline,
		BaselineMinimum: h.Baseline / 2,
		SustainFor:      h.Hold,
	}
	m := impact.Analyze(p.Series, at, options)
	fault := result.NewFault(&m, result.FaultInput{})
	f.Fault = m.Doubts
	f.outages(&m, fault)
	f.Of[Recovery] = bounded(m.RecoveryTime)
	switch {
	case m.IsRecoveryUnknown():
		f.Of[Recovery] = Figure{math.Inf(1), m.RecoveryTime.AtLeast.Seconds(), math.Inf(1), true}
	case !m.Recovered: // a claim like any other: that it took longer
		f.Of[Recovery] = Figure{math.Inf(1), at.Deadline.Seconds(), math.Inf(1), true}
	}
	f.Of[TimeToImpact] = bounded(m.TimeToImpact)
	f.Of[Dip] = exactly(fault.Dip().Value)
	f.Of[LostRequests] = exactly(m.LostRequests)
	f.Of[Errors] = exactly(float64(m.Errors))
	f.Of[BaselineRate] = exactly(m.BaselineRate)
	f.load(p)
	f.losses(h, p)
	return f
}

func (f *Figures) outages(m *impact.Impact, fault *result.Fault) {
	f.Of[Outage] = bounded(fault.Outage().Bounded)
	o := &m.Outages //nolint:forbidigo // each by its own name
	for name, part := range map[string]durations.Bounded{
		OutageLoad:   o.Load,
		OutageReads:  o.Reads,
		OutageWrites: o.Writes,
		OutageShard:  o.Shard.Bounded,
		OutageProbe:  o.Probe,
	} {
		if part.Known() {
			f.Of[name] = bounded(part)
		}
	}
	for _, o := range m.Operations {
		f.Of["operations."+o.Name+".outage"] = bounded(o.Outage)
	}
	f.Of[TotalOutage] = bounded(m.TotalOutage)
}

// load sets the figures of the load as a whole.
func (f *Figures) load(p *Played) {
	r := result.NewLoad(p.Plan, p.Series, result.LoadInput{Outcome: result.Finished})
	verdict.Load(nil, r)
	f.LoadTest = r.Doubts
	rate, errors := exactly(r.Total.Throughput), exactly(r.Total.ErrorRate)
	if s := r.Total.Stalled; s != nil {
		rate.AtMost = max(rate.AtMost, s.Throughput)
		errors.AtLeast = min(errors.AtLeast, s.ErrorRate)
	}
	f.Of[Throughput], f.Of[ErrorRate] = rate, errors
}

// losses sets the lost writes of the load, of the fault, and of a second one.
func (f *Figures) losses(h *History, p *Played) {
	if p.Ledger == nil {
		return
	}
	all := result.Count{AtLeast: p.Ledger.Lost, AtMost: p.Ledger.Lost}
	f.Of[LostInTheLoad] = counted(all)
	acted := func(after time.Duration) summary.Window {
		return summary.Window{From: h.Baseline + after, To: h.Baseline + after + h.Hold + time.Second}
	}
	faults := []summary.Window{acted(0)}
	if h.Harmless > 0 {
		faults = append(faults, acted(h.Harmless))
		f.Of[LostHarmless] = counted(lossesOf(1, faults, p.Ledger, all))
	}
	f.Of[LostWrites] = counted(lossesOf(0, faults, p.Ledger, all))
}

func lossesOf(fault int, acted []summary.Window, l *record.Ledger, all result.Count) result.Count {
	return result.LossesOf(fault, acted, l.Losses, all).Count
}

func counted(c result.Count) Figure {
	return Figure{float64(c.AtMost), float64(c.AtLeast), float64(c.AtMost), true}
}

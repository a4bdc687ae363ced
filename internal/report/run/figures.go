package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

func (s *subject) loadFigures() []report.Figure {
	t := &s.load.Total
	list := []report.Figure{{
		Name:     "throughput",
		Label:    "Throughput",
		Unit:     result.UnitPerSecond,
		Value:    ofRequests(t, t.Throughput),
		Headline: true,
		Note:     fmt.Sprintf("%s successes in the measured time.", report.Count(t.OK-t.Drained)),
	}}
	if q := t.Latency; q != nil {
		from := "from the send"
		if s.openLoop {
			from = "from the intended arrival"
		}
		list = append(list, quantileFigures(q, "")...)
		for i := range list {
			if list[i].Name == "latencyP99" {
				list[i].Headline = true
				list[i].Note = fmt.Sprintf("Of successes, %s; p50 %s, at most %s.", from, report.Seconds(q.P50),
					report.Seconds(q.Max))
			}
		}
	}
	list = append(list, report.Figure{
		Name:     "errorRate",
		Label:    "Errors",
		Unit:     result.UnitShare,
		Value:    ofRequests(t, t.ErrorRate),
		Headline: true,
		Note: fmt.Sprintf("%s of %s requests: refused, broken off, too late, or never sent.",
			report.Count(t.Errors()), report.Count(t.Requests)),
	})
	if t.Requests > 0 {
		list = append(list, count("requests", "Requests", t.Requests),
			count("failed", "Failed", t.Failed), count("unknown", "Unknown", t.Unknown),
			count("dropped", "Dropped", t.Dropped))
	}
	list = append(list, s.outageFigure(), s.lostWritesFigure())
	for i := range s.load.Operations {
		o := &s.load.Operations[i]
		list = append(list, report.Figure{
			Name:  "throughput",
			Of:    o.Name,
			Label: "Throughput of " + o.Name,
			Unit:  result.UnitPerSecond,
			Value: ofRequests(o, o.Throughput),
		},
			report.Figure{
				Name:  "errorRate",
				Of:    o.Name,
				Label: "Errors of " + o.Name,
				Unit:  result.UnitShare,
				Value: ofRequests(o, o.ErrorRate),
			})
		if o.Latency != nil {
			list = append(list, quantileFigures(o.Latency, o.Name)...)
		}
	}
	for _, f := range s.faults {
		for _, one := range f.figures(f.Name) {
			one.Headline = false
			list = append(list, one)
		}
	}
	return list
}

// ofRequests is a figure of requests; nil if none was made, of which nothing is known.
func ofRequests(o *result.Operation, x float64) *float64 {
	if o.Requests == 0 {
		return nil
	}
	return &x
}

func count(name, label string, n uint64) report.Figure {
	return report.Figure{
		Name:      name,
		Label:     label,
		Unit:      result.UnitCount,
		Value:     new(float64(n)),
		Qualifier: "exact",
	}
}

func quantileFigures(q *result.Quantiles, of string) (list []report.Figure) {
	for _, one := range []struct {
		name, label string
		value       result.Seconds
	}{
		{"latencyP50", "Latency, p50", q.P50},
		{"latencyP90", "Latency, p90", q.P90},
		{"latencyP99", "Latency, p99", q.P99},
		{"latencyP999", "Latency, p99.9", q.P999},
		{"latencyMax", "Latency, highest", q.Max},
	} {
		label := one.label
		if of != "" {
			label += " of " + of
		}
		list = append(list, report.Figure{
			Name:  one.name,
			Of:    of,
			Label: label,
			Unit:  result.UnitSeconds,
			Value: new(one.value.Seconds()),
		})
	}
	return list
}

func (s *subject) outageFigure() report.Figure {
	f := report.Figure{
		Name:     "outage",
		Label:    "Longest outage",
		Unit:     result.UnitSeconds,
		Headline: true,
	}
	g := s.outage()
	switch {
	case g == nil && !s.over() && s.in.Series == nil:
		f.Note = "It is known when the load has ended."
		return f
	case g == nil && s.load.Total.OK == 0:
		f.Note = "No request succeeded."
		return f
	case g == nil:
		f.Value, f.Note = new(0.0), "No stretch without a success was recorded."
		return f
	}
	setBounds(&f, g.Length.Seconds(), g.AtLeast.Seconds(), g.AtMost.Seconds())
	f.Note = "Longest stretch without a success, the faults included."
	switch g.Of {
	case impact.Shard:
		f.Label = fmt.Sprintf("Longest outage, of shard %d", g.Shard)
		f.Note = "Longest stretch in which one shard answered nothing, the faults included; the others did."
	case impact.Probe:
		f.Label = "Longest outage, of new clients"
		f.Note = "Longest stretch in which nobody who connected anew got an answer, the faults included; connections of the load did."
	case impact.Reads, impact.Writes:
		f.Note = "Longest stretch without a success of the " + strings.ToLower(g.Of) +
			", the faults included."
	}
	if g.Open {
		f.Value, f.AtLeast, f.AtMost = nil, new(g.AtLeast.Seconds()), nil
		f.Note = "No request succeeded from then to the end."
	}
	return f
}

// over reports whether the load has ended: only then its status has the longest outage.
func (s *subject) over() bool {
	if s.test == nil {
		return s.in.Load != nil || s.in.Series.Ended()
	}
	state, _ := stateOf(s.test.Status.Conditions, true)
	return state == report.Complete || state == report.Failed && s.load.Outage() != nil
}

// outage is the longest outage of the load; of one that is not over that of its record so far, or
// that of a fault, if that is longer. nil = none is known.
func (s *subject) outage() *result.ShardGap {
	g := s.load.Outage()
	if g != nil || s.over() {
		return s.known(g)
	}
	if s.in.Series != nil {
		var seen result.Load
		seen.SetGaps(s.in.Series, s.from, s.in.Series.End())
		g = seen.Outage()
	}
	for _, f := range s.faults {
		o := f.result.Outage()
		if o.Value == 0 || g != nil && result.Seconds(o.Value) <= g.Length {
			continue
		}
		g = &result.ShardGap{Shard: o.Shard, Gap: result.Gap{
			Length:  result.Seconds(o.Value),
			AtLeast: result.Seconds(o.AtLeast),
			AtMost:  result.Seconds(o.AtMost),
			Of:      o.Of,
		}}
	}
	return s.known(g)
}

// known is a gap as exactly as it is known: one that was the outage of a fault has its bounds,
// which are by what was usual before the fault; those of the load are by what was usual in all of
// its time. So the same gap has the same bounds wherever it is shown.
func (s *subject) known(g *result.ShardGap) *result.ShardGap {
	if g == nil {
		return nil
	}
	for _, f := range s.faults {
		o := f.result.Outage()
		if o.Value > 0 && (o.Value-time.Duration(g.Length)).Abs() < time.Microsecond {
			same := *g
			same.AtLeast = result.Seconds(o.AtLeast)
			same.AtMost = result.Seconds(o.AtMost)
			return &same
		}
	}
	return g
}

func (s *subject) lostWritesFigure() report.Figure {
	f := report.Figure{
		Name:     "lostWrites",
		Label:    "Lost writes",
		Unit:     result.UnitCount,
		Headline: true,
		Note:     "spec.verify.acknowledgedWrites switches this on.",
	}
	if s.test == nil {
		f.Note = "--verify-writes switches this on."
	}
	v := s.verification()
	if v == nil {
		return f
	}
	return lostWrites(f, v.LostWrites(), v.Acknowledged, v.Unread)
}

// lostWrites sets the figure of lost writes of so many that were acknowledged; lost is nil if it is
// not known, for the reason why.
func lostWrites(
	f report.Figure, lost *result.Count, acknowledged uint64, why string,
) report.Figure {
	if lost == nil {
		f.Note = "Not known: " + why + "."
		return f
	}
	f.Note = fmt.Sprintf("Of %s writes that were acknowledged, then read back after the load.",
		report.Count(acknowledged))
	if n, exact := lost.Exact(); exact {
		f.Value, f.Qualifier = new(float64(n)), "of "+report.Count(acknowledged)
		return f
	}
	f.AtLeast, f.AtMost = new(float64(lost.AtLeast)), new(float64(lost.AtMost))
	f.Note = "Some of those that were not found may have been evicted."
	return f
}

// verification is what was read back; nil = nothing was.
func (s *subject) verification() *result.Verification {
	if s.load.Verification != nil || s.test == nil {
		return s.load.Verification
	}
	return digest.VerificationOf(s.test.Status.Verification, s.start)
}

// figures are those of one fault; of is its name in the report of its load.
func (f *fault) figures(of string) []report.Figure {
	if f.Status.InjectedAt == nil {
		return nil
	}
	list := []report.Figure{
		f.outageFigure(),
		f.dipFigure(),
		f.recoveryFigure(),
		f.lostWritesFigure(),
		{
			Name:      "errors",
			Label:     "Errors",
			Unit:      result.UnitCount,
			Value:     new(float64(f.result.Errors)),
			Qualifier: "exact",
			Headline:  true,
			Note:      f.errorsNote(),
		},
	}
	i := f.result
	list = append(list, count("lostRequests", "Lost requests", i.LostRequests),
		report.Figure{
			Name:  "baselineTPS",
			Label: "Baseline",
			Unit:  result.UnitPerSecond,
			Value: i.Baseline,
		},
		report.Figure{
			Name:  "minTPS",
			Label: "Lowest throughput",
			Unit:  result.UnitPerSecond,
			Value: i.Lowest,
		},
		boundedFigure("timeToImpact", "Time to impact", i.TimeToImpact))
	list = append(list, f.partFigures()...)
	list = append(list, report.Figure{
		Name:  "recoveredThroughput",
		Label: "Recovered throughput",
		Unit:  result.UnitShare,
		Value: i.RecoveredShare,
	})
	if l := i.Latency; l != nil {
		for _, one := range []struct {
			name, label string
			value       *result.Quantiles
		}{
			{"latencyP99Before", "p99 before", l.Before},
			{"latencyP99During", "p99 until recovery", l.During},
			{"latencyP99After", "p99 after", l.After},
		} {
			list = append(list, p99Figure(one.name, one.label, one.value))
		}
	}
	if w := i.WhileActive; w != nil {
		list = append(list, report.Figure{
			Name:  "whileActiveThroughput",
			Label: "Throughput while active",
			Unit:  result.UnitPerSecond,
			Value: w.Throughput,
		},
			report.Figure{
				Name:  "whileActiveChange",
				Label: "Change of the throughput while active",
				Unit:  result.UnitShare,
				Value: w.ThroughputChange,
			},
			p99Figure("whileActiveLatencyP99", "p99 while active", w.Latency))
	}
	shown := list[:0]
	for _, one := range list {
		if one.Of = of; one.Headline || one.Value != nil {
			shown = append(shown, one)
		}
	}
	return shown
}

// known is a figure, or 0 if it was not measured.
func known(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// partFigures are the outages of the load and of its parts.
func (f *fault) partFigures() []report.Figure {
	o := f.result.Outages //nolint:forbidigo // each is shown by its own name
	if o == nil {
		return nil
	}
	list := []report.Figure{
		boundedFigure("loadOutage", "Outage of the load", &o.Load),
		boundedFigure("readsOutage", "Outage of the reads", o.Reads),
		boundedFigure("writesOutage", "Outage of the writes", o.Writes),
		boundedFigure("probeOutage", "Outage of new clients", o.Probe),
	}
	if s := o.Shard; s != nil {
		list = append(list, boundedFigure("shardOutage", fmt.Sprintf("Outage of shard %d", *s.Shard),
			&s.BoundedSeconds))
	}
	return list
}

func p99Figure(name, label string, q *result.Quantiles) report.Figure {
	f := report.Figure{
		Name:  name,
		Label: label,
		Unit:  result.UnitSeconds,
	}
	if q != nil {
		f.Value = new(q.P99.Seconds())
	}
	return f
}

func boundedFigure(name, label string, b *result.BoundedSeconds) report.Figure {
	f := report.Figure{
		Name:  name,
		Label: label,
		Unit:  result.UnitSeconds,
	}
	if b != nil {
		setBounds(&f, b.Value.Seconds(), b.AtLeast.Seconds(), b.AtMost.Seconds())
	}
	return f
}

func setBounds(f *report.Figure, value, atLeast, atMost float64) {
	f.Value, f.AtLeast, f.AtMost = new(value), new(atLeast), new(atMost)
}

func (f *fault) outageFigure() report.Figure {
	if !f.result.Measured() {
		return report.Figure{
			Name:     "outage",
			Label:    "Outage",
			Unit:     result.UnitSeconds,
			Headline: true,
			Note:     "There are no figures yet.",
		}
	}
	longest := f.result.Outage()
	out := boundedFigure("outage", "Outage", new(result.Bounds(longest.Bounded)))
	out.Headline = true
	switch of := ofWhat(longest); {
	case longest.Value == 0:
		out.Note = "No stretch without a success was seen."
	case longest.Of == impact.Shard:
		out.Label = "Outage of " + of
		out.Note = "Longest stretch in which one shard answered nothing; the others did."
	case longest.Of == impact.Probe:
		out.Label = "Outage of " + of
		out.Note = "Longest stretch in which nobody who connected anew got an answer; connections of the load did."
	case of != "":
		out.Note = fmt.Sprintf("Longest stretch without a success of the %s; the others had some.", of)
	default:
		out.Note = "Longest stretch without a success."
	}
	//nolint:forbidigo // named as that of the probe
	all := f.result.Outages
	if all != nil && all.Probe != nil && longest.Of != impact.Probe {
		out.Note += fmt.Sprintf(" The probe, which dials afresh, had %s.",
			report.Seconds(all.Probe.Value))
	}
	return out
}

func (f *fault) dipFigure() report.Figure {
	dip, of := f.dip()
	out := report.Figure{
		Name:     "dip",
		Label:    "Dip",
		Unit:     result.UnitShare,
		Value:    new(dip),
		Headline: true,
	}
	if known(f.result.Baseline) == 0 {
		out.Value, out.Note = nil, "There is no baseline."
		return out
	}
	out.Note = fmt.Sprintf("From %s down to %s in the worst second.",
		report.Rate(known(f.result.Baseline)), report.Rate(known(f.result.Lowest)))
	if of != "" {
		out.Note = "Of the " + of + ", in their worst second."
	}
	return out
}

func (f *fault) recoveryFigure() report.Figure {
	out := report.Figure{
		Name:     "recoveryTime",
		Label:    "Recovery",
		Unit:     result.UnitSeconds,
		Headline: true,
	}
	if took, recovered := f.result.Recovery(); recovered {
		setBounds(&out, took.Value.Seconds(), took.AtLeast.Seconds(), took.AtMost.Seconds())
		out.Note = "Until 90 % of the baseline was back, and held for 10 s."
		return out
	}
	if waited := f.waited(); waited > 0 {
		out.AtLeast = new(waited.Round(time.Millisecond).Seconds())
	}
	out.Note = "90 % of the baseline was not back by then, for 10 s."
	if f.Status.SettledTime == nil {
		out.Note = "Not yet."
	}
	return out
}

func (f *fault) lostWritesFigure() report.Figure {
	out := report.Figure{
		Name:     "lostWrites",
		Label:    "Lost writes",
		Unit:     result.UnitCount,
		Headline: true,
		Note:     "spec.verify.acknowledgedWrites of the load test switches this on.",
	}
	lost, s := f.result.LostWrites(), f.subject
	if s.test == nil && lost == nil {
		return out
	}
	if s.test == nil {
		out = lostWrites(out, lost, 0, "")
		out.Qualifier, out.Note = "", "Acknowledged, then not found after the load."
		return out
	}
	if s.test.Spec.Verify == nil && lost == nil {
		return out
	}
	if v := s.verification(); v != nil {
		return lostWrites(out, lost, v.Acknowledged, v.Unread)
	}
	out.Note = "They are read back when the load has ended."
	return out
}

func (f *fault) errorsNote() string {
	took := f.waited()
	if recovered, ok := f.result.Recovery(); ok {
		took = recovered.Value
	}
	due := known(f.result.Baseline) * took.Seconds()
	if due >= 1 && f.subject.openLoop {
		return fmt.Sprintf("Of about %s requests due until recovery.", report.Count(int64(due+.5)))
	}
	return "Failed, unknown and dropped requests until recovery."
}

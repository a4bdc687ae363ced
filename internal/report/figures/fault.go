package figures

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// OfFault are the figures of one fault; of is its name in the report of its load.
func OfFault(f *subject.Fault, of string) []report.Figure {
	if f.Status.InjectedAt == nil {
		return nil
	}
	list := []report.Figure{
		faultOutage(f),
		dipFigure(f),
		recoveryFigure(f),
		faultLostWrites(f),
		{
			Name:      "errors",
			Label:     "Errors",
			Unit:      result.UnitCount,
			Value:     new(float64(f.Result.Errors)),
			Qualifier: "exact",
			Headline:  true,
			Note:      errorsNote(f),
		},
	}
	i := f.Result
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
	list = append(list, partFigures(f)...)
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

// partFigures are the outages of the load and of its parts.
func partFigures(f *subject.Fault) []report.Figure {
	o := f.Result.Outages //nolint:forbidigo // each is shown by its own name
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

func faultOutage(f *subject.Fault) report.Figure {
	if !f.Result.Measured() {
		return report.Figure{
			Name:     "outage",
			Label:    "Outage",
			Unit:     result.UnitSeconds,
			Headline: true,
			Note:     "There are no figures yet.",
		}
	}
	longest := f.Result.Outage()
	out := boundedFigure("outage", "Outage", new(result.Bounds(longest.Bounded)))
	out.Headline = true
	switch of := subject.OfWhat(longest); {
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
	all := f.Result.Outages
	if all != nil && all.Probe != nil && longest.Of != impact.Probe {
		out.Note += fmt.Sprintf(" The probe, which dials afresh, had %s.",
			report.Seconds(all.Probe.Value))
	}
	return out
}

func dipFigure(f *subject.Fault) report.Figure {
	dip, of := f.Dip()
	out := report.Figure{
		Name:     "dip",
		Label:    "Dip",
		Unit:     result.UnitShare,
		Value:    new(dip),
		Headline: true,
	}
	if ptr.Deref(f.Result.Baseline, 0) == 0 {
		out.Value, out.Note = nil, "There is no baseline."
		return out
	}
	out.Note = fmt.Sprintf("From %s down to %s in the worst second.",
		report.Rate(ptr.Deref(f.Result.Baseline, 0)), report.Rate(ptr.Deref(f.Result.Lowest, 0)))
	if of != "" {
		out.Note = "Of the " + of + ", in their worst second."
	}
	return out
}

func recoveryFigure(f *subject.Fault) report.Figure {
	out := report.Figure{
		Name:     "recoveryTime",
		Label:    "Recovery",
		Unit:     result.UnitSeconds,
		Headline: true,
	}
	if took, recovered := f.Result.Recovery(); recovered {
		setBounds(&out, took.Value.Seconds(), took.AtLeast.Seconds(), took.AtMost.Seconds())
		out.Note = "Until 90 % of the baseline was back, and held for 10 s."
		return out
	}
	if waited := f.Waited(); waited > 0 {
		out.AtLeast = new(waited.Round(time.Millisecond).Seconds())
	}
	out.Note = "90 % of the baseline was not back by then, for 10 s."
	if f.Status.SettledTime == nil {
		out.Note = "Not yet."
	}
	return out
}

func faultLostWrites(f *subject.Fault) report.Figure {
	out := report.Figure{
		Name:     "lostWrites",
		Label:    "Lost writes",
		Unit:     result.UnitCount,
		Headline: true,
		Note:     "spec.verify.acknowledgedWrites of the load test switches this on.",
	}
	lost, s := f.Result.LostWrites(), f.Run
	if s.Test == nil && lost == nil {
		return out
	}
	if s.Test == nil {
		out = lostWrites(out, lost, 0, "")
		out.Qualifier, out.Note = "", "Acknowledged, then not found after the load."
		return out
	}
	if s.Test.Spec.Verify == nil && lost == nil {
		return out
	}
	if v := s.Verification(); v != nil {
		return lostWrites(out, lost, v.Acknowledged, v.Unread)
	}
	out.Note = "They are read back when the load has ended."
	return out
}

func errorsNote(f *subject.Fault) string {
	took := f.Waited()
	if recovered, ok := f.Result.Recovery(); ok {
		took = recovered.Value
	}
	due := ptr.Deref(f.Result.Baseline, 0) * took.Seconds()
	if due >= 1 && f.Run.OpenLoop {
		return fmt.Sprintf("Of about %s requests due until recovery.", report.Count(int64(due+.5)))
	}
	return "Failed, unknown and dropped requests until recovery."
}

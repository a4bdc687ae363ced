// Package figures makes the figures of the reports of load tests and faults.
package figures

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// OfLoad are the figures of a load, of its operations, and of the faults on it.
func OfLoad(s *subject.Run) []report.Figure {
	t := &s.Load.Total
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
		if s.OpenLoop {
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
	if t.Redirected > 0 {
		list = append(list, count("redirected", "Redirected", t.Redirected))
	}
	list = append(list, loadOutage(s), loadLostWrites(s))
	for i := range s.Load.Operations {
		list = append(list, ofOperation(&s.Load.Operations[i])...)
	}
	for _, f := range s.Faults {
		for _, one := range OfFault(f, f.Name) {
			one.Headline = false
			list = append(list, one)
		}
	}
	return list
}

// ofOperation are the figures of one operation of a load.
func ofOperation(o *result.Operation) (list []report.Figure) {
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
	if ratio := o.HitRatio(); ratio != nil {
		list = append(list, report.Figure{
			Name:  "hitRatio",
			Of:    o.Name,
			Label: "Hits of " + o.Name,
			Unit:  result.UnitShare,
			Value: ratio,
		})
	}
	if o.Latency != nil {
		list = append(list, quantileFigures(o.Latency, o.Name)...)
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
		{"latencyP95", "Latency, p95", q.P95},
		{"latencyP99", "Latency, p99", q.P99},
		{"latencyP999", "Latency, p99.9", q.P999},
		{"latencyP9999", "Latency, p99.99", q.P9999},
		{"latencyMax", "Latency, highest", q.Max},
	} {
		if one.value == 0 && q.P50 > 0 { // an earlier version did not compute it
			continue
		}
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

func loadOutage(s *subject.Run) report.Figure {
	f := report.Figure{
		Name:     "outage",
		Label:    "Longest outage",
		Unit:     result.UnitSeconds,
		Headline: true,
	}
	g := s.Outage()
	switch {
	case g == nil && !s.Over() && s.In.Series == nil:
		f.Note = "It is known when the load has ended."
		return f
	case g == nil && s.Load.Total.OK == 0:
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

func loadLostWrites(s *subject.Run) report.Figure {
	f := report.Figure{
		Name:     "lostWrites",
		Label:    "Lost writes",
		Unit:     result.UnitCount,
		Headline: true,
		Note:     "spec.verify.acknowledgedWrites switches this on.",
	}
	if s.Test == nil {
		f.Note = "--verify-writes switches this on."
	}
	v := s.Verification()
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

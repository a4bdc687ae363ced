package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/result"
)

// fault is one fault on the load.
type fault struct {
	*v1alpha1.RedisFault
	subject *subject
	at      time.Duration // t0 from the start of the load, on the record's clock
	result  *result.Fault
	drawn   curve.Fault
}

func (s *subject) faultOf(f *v1alpha1.RedisFault) *fault {
	one := &fault{
		RedisFault: f,
		subject:    s,
		result:     digest.ResultOf(s.in.Results, f, s.start),
	}
	if f.Status.InjectedAt == nil {
		return one
	}
	one.at = time.Duration(one.result.At)
	one.drawn = one.draw()
	return one
}

// draw is the fault as curves show it.
func (f *fault) draw() curve.Fault {
	d := curve.Fault{
		Name:   f.Name,
		Type:   string(f.Spec.Action.Type),
		Target: f.targetName(),
		At:     f.at,
		Lost:   int64(f.result.LostRequests),
		Due:    known(f.result.Baseline),
	}
	if took, recovered := f.result.Recovery(); recovered {
		d.Recovered = f.at + took.Value
	} else if t := f.Status.SettledTime; t != nil {
		d.Settled = f.at + t.Sub(f.Status.InjectedAt.Time)
	}
	o := f.result.Outage()
	if o.Value > 0 && f.subject.in.Series != nil {
		gap, ok := longestGap(gapsOf(f.subject.in.Series, o), f.at-f.subject.in.Series.Step, d.Recovered)
		if ok {
			d.Outage = curve.Window{From: time.Duration(gap.From), To: time.Duration(gap.To)}
			d.Length = spanOf(o.Bounded) + inBrackets(ofWhat(o))
		}
	}
	for _, p := range f.result.Phases {
		to, source := f.at+time.Duration(p.At), v1alpha1.PhaseSource(p.Source)
		phase := curve.Phase{
			Name:  p.Name,
			Owner: events.OwnerOf(p.Name, source),
			From:  to - time.Duration(p.Took.Value),
			To:    to,
		}
		sooner := time.Duration(p.Took.Value - p.Took.AtLeast)
		if sooner >= 200*time.Millisecond && source == v1alpha1.PhaseKubernetes {
			phase.Sooner = min(sooner, to-f.at)
		}
		d.Phases = append(d.Phases, phase)
	}
	return d
}

// gapsOf are the gaps of what had an outage.
func gapsOf(s *merged.Series, o impact.Outage) []record.Gap {
	switch o.Of {
	case impact.Reads:
		return s.ReadGaps()
	case impact.Writes:
		return s.WriteGaps()
	case impact.Shard:
		if o.Shard < s.Shards() {
			return s.ShardGaps(o.Shard)
		}
	case impact.Probe:
		gaps := slices.Clone(s.ProbeGaps())
		for shard := range s.ProbeShards() {
			gaps = append(gaps, s.ProbeShardGaps(shard)...)
		}
		return gaps
	}
	return s.Gaps()
}

// ofWhat names the part of the clients that had an outage; "" = all.
func ofWhat(o impact.Outage) string {
	switch o.Of {
	case impact.Shard:
		return fmt.Sprintf("shard %d", o.Shard)
	case impact.Probe:
		return "new clients"
	case impact.Reads, impact.Writes:
		return strings.ToLower(o.Of)
	}
	return ""
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// longestGap is the longest gap that begins between two instants; the second is the end of the
// record if it is 0.
func longestGap(gaps []record.Gap, from, until time.Duration) (longest record.Gap, found bool) {
	for _, g := range gaps {
		if time.Duration(g.From) < from || until > 0 && time.Duration(g.From) > until {
			continue
		}
		if !found || g.To-g.From > longest.To-longest.From {
			longest, found = g, true
		}
	}
	return longest, found
}

// targetName is the first target, and how many others there are.
func (f *fault) targetName() string {
	switch n := len(f.Status.Targets); n {
	case 0:
		return ""
	case 1:
		return f.Status.Targets[0].Pod
	default:
		return f.Status.Targets[0].Pod + " and " + report.Count(n-1) + " more"
	}
}

func (f *fault) state(d *report.Document) {
	status := &f.Status
	var why string
	d.State, why = stateOf(status.Conditions, status.StartTime != nil || status.InjectedAt != nil)
	d.Verdict = report.Verdict(status.Verdict)
	d.Time = time.Time{}
	if status.InjectedAt != nil {
		d.Time = status.InjectedAt.UTC()
	}
	d.Reason = why
	if d.Verdict == "" {
		return
	}
	met, judged := 0, len(d.Objectives)
	for _, o := range status.Objectives {
		judged++
		if o.Met != nil && *o.Met {
			met++
		}
	}
	unjudged := verdict.Unjudged(status.Objectives, f.result.LostWrites())
	switch n := len(f.result.Doubts); {
	case d.Verdict == report.Pass && judged > 0 && n > 0:
		d.Reason = "All " + report.Count(judged) + " objectives are met, whatever the doubt" +
			report.Plural(n) + " below" + unjudged + "."
	case d.Verdict == report.Pass && judged > 0:
		d.Reason = "All " + report.Count(judged) + " objectives are met. " + f.undoubted() + unjudged +
			"."
	case d.Verdict == report.Pass:
		d.Reason = "It has no objectives. " + f.undoubted() + unjudged + "."
	case why == "":
		d.Reason = report.Count(met) + " of " + report.Count(judged) + " objectives are met."
	}
}

// undoubted says that nothing makes the figures doubtful; where the load generator limited the
// load, as the report says below, that this is in their bounds.
func (f *fault) undoubted() string {
	b := f.subject.load.Bottleneck
	if b != nil && b.Component == string(bottleneck.LoadGenerator) {
		return "The load generator limited the load, which the bounds of the figures contain"
	}
	return "No reason for doubt was found"
}

func (f *fault) doubts(of string) (list []report.Doubt) {
	for _, d := range f.result.Doubts {
		list = append(list, report.Doubt{
			Reason:  d.Reason,
			Of:      of,
			Message: d.Message,
		})
	}
	if f.Status.Effect == v1alpha1.EffectNotObserved ||
		f.Status.Effect == v1alpha1.EffectInconclusive {
		list = append(list, report.Doubt{
			Reason:  effectUnconfirmed,
			Of:      of,
			Message: "effect " + string(f.Status.Effect) + ": " + f.Status.EffectEvidence,
		})
	}
	inconclusive := slices.ContainsFunc(f.result.Objectives, func(o result.Objective) bool {
		return o.Met == nil
	})
	if len(list) == 0 && f.Status.Verdict == v1alpha1.VerdictInconclusive && !inconclusive {
		list = append(list, unlisted(f.Status.Conditions, of))
	}
	return list
}

// doubts are those about the load, and about each fault.
func (s *subject) doubts() (list []report.Doubt) {
	switch {
	case s.in.Load != nil:
		for _, d := range s.in.Load.Doubts {
			list = append(list, report.Doubt{Reason: d.Reason, Message: d.Message})
		}
	case s.test != nil:
		for _, d := range s.test.Status.Doubts {
			list = append(list, report.Doubt{Reason: d.Reason, Message: d.Message})
		}
	}
	if s.test != nil && len(list) == 0 && s.test.Status.Verdict == v1alpha1.VerdictInconclusive {
		if !slices.ContainsFunc(s.test.Status.Objectives, func(o v1alpha1.ObjectiveResult) bool {
			return o.Met == nil
		}) {
			list = append(list, unlisted(s.test.Status.Conditions, ""))
		}
	}
	if s.test == nil && s.in.Load == nil && s.in.Series != nil && s.in.Series.Ended() {
		list = append(list, report.Doubt{
			Reason:  noResult,
			Message: "the record has no result of its run: the figures are of the whole time, with ramp-up and warm-up, and nobody judged them",
		})
	}
	for _, f := range s.faults {
		list = append(list, f.doubts(f.Name)...)
	}
	return list
}

// outage is how long whatever had the longest outage had no success, as text; "" = there was none.
func (f *fault) outage() string {
	o := f.result.Outage()
	if o.Value == 0 {
		return ""
	}
	return spanOf(o.Bounded)
}

// spanOf is a duration as a figure shows it.
func spanOf(b durations.Bounded) string {
	one := boundedFigure("", "", new(result.Bounds(b)))
	return one.Text()
}

// dip is the dip, and of which requests: "" = of all.
func (f *fault) dip() (float64, string) {
	d := f.result.Dip()
	if d.Of == impact.All {
		return d.Value, ""
	}
	return d.Value, strings.ToLower(d.Of)
}

// waited is for how long a recovery was waited for, if there was none.
func (f *fault) waited() time.Duration {
	switch {
	case f.Status.SettledTime != nil && f.Status.InjectedAt != nil:
		return f.Status.SettledTime.Sub(f.Status.InjectedAt.Time)
	case f.subject.in.Series != nil:
		return max(0, f.subject.in.Series.End()-f.at)
	}
	return 0
}

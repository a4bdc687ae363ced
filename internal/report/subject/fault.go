package subject

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/result"
)

// Fault is one fault on the load.
type Fault struct {
	*v1alpha1.RedisFault
	Run    *Run
	At     time.Duration // t0 from the start of the load, on the record's clock
	Result *result.Fault
	Drawn  curve.Fault
	Lone   bool // only its result was kept: there is no specification
}

// FaultOf is a fault of the input.
func (s *Run) FaultOf(f *v1alpha1.RedisFault) *Fault {
	one := &Fault{
		RedisFault: f,
		Run:        s,
		Result:     digest.ResultOf(s.In.Results, f, s.Start),
		Lone:       slices.Contains(s.lone, f.Name),
	}
	if f.Status.InjectedAt == nil {
		return one
	}
	one.At = time.Duration(one.Result.At)
	one.Drawn = one.draw()
	return one
}

// draw is the fault as curves show it.
func (f *Fault) draw() curve.Fault {
	d := curve.Fault{
		Name:   f.Name,
		Type:   string(f.Spec.Action.Type),
		Target: f.TargetName(),
		At:     f.At,
		Lost:   int64(f.Result.LostRequests),
		Due:    ptr.Deref(f.Result.Baseline, 0),
	}
	if took, recovered := f.Result.Recovery(); recovered {
		d.Recovered = f.At + took.Value
	} else if t := f.Status.SettledTime; t != nil {
		d.Settled = f.At + t.Sub(f.Status.InjectedAt.Time)
	}
	o := f.Result.Outage()
	if o.Value > 0 && f.Run.In.Series != nil {
		gap, ok := longestGap(gapsOf(f.Run.In.Series, o), f.At-f.Run.In.Series.Step, d.Recovered)
		if ok {
			d.Outage = curve.Window{From: time.Duration(gap.From), To: time.Duration(gap.To)}
			d.Length = f.OutageOfWhat()
		}
	}
	for _, p := range f.Result.Phases {
		to, source := f.At+time.Duration(p.At), v1alpha1.PhaseSource(p.Source)
		phase := curve.Phase{
			Name:  p.Name,
			Owner: events.OwnerOf(p.Name, source),
			From:  to - time.Duration(p.Took.Value),
			To:    to,
		}
		sooner := time.Duration(p.Took.Value - p.Took.AtLeast)
		if sooner >= 200*time.Millisecond && source == v1alpha1.PhaseKubernetes {
			phase.Sooner = min(sooner, to-f.At)
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

// OfWhat names the part of the clients that had an outage; "" = all.
func OfWhat(o impact.Outage) string {
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

// TargetName is the first target, and how many others there are.
func (f *Fault) TargetName() string {
	switch n := len(f.Status.Targets); n {
	case 0:
		return ""
	case 1:
		return f.Status.Targets[0].Pod
	default:
		return f.Status.Targets[0].Pod + " and " + report.Count(n-1) + " more"
	}
}

// Outage is how long whatever had the longest outage had no success, as text; "" = there was none.
func (f *Fault) Outage() string {
	o := f.Result.Outage()
	if o.Value == 0 {
		return ""
	}
	return Span(o.Bounded)
}

// OutageOfWhat is Outage with the part of the clients that had it, if that is not all of them.
func (f *Fault) OutageOfWhat() string {
	of := OfWhat(f.Result.Outage())
	if of == "" {
		return f.Outage()
	}
	return f.Outage() + " (" + of + ")"
}

// Span is a duration as a figure shows it.
func Span(b durations.Bounded) string {
	one := report.Figure{
		Unit:    result.UnitSeconds,
		Value:   new(b.Value.Seconds()),
		AtLeast: new(b.AtLeast.Seconds()),
		AtMost:  new(b.AtMost.Seconds()),
	}
	return one.Text()
}

// Dip is the dip, and of which requests: "" = of all.
func (f *Fault) Dip() (float64, string) {
	d := f.Result.Dip()
	if d.Of == impact.All {
		return d.Value, ""
	}
	return d.Value, strings.ToLower(d.Of)
}

// Waited is for how long a recovery was waited for, if there was none.
func (f *Fault) Waited() time.Duration {
	switch {
	case f.Status.SettledTime != nil && f.Status.InjectedAt != nil:
		return f.Status.SettledTime.Sub(f.Status.InjectedAt.Time)
	case f.Run.In.Series != nil:
		return max(0, f.Run.In.Series.End()-f.At)
	}
	return 0
}

package study

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/report/overlay"
	"github.com/redquake/redquake/internal/result"
)

// Detail is what the objects of a run have beyond the record of the experiment.
type Detail struct {
	Curve    *overlay.Curve // nil = its record is gone
	Begins   *time.Duration
	Phases   []result.Phase // of the first fault
	Use      Use
	ReadBack int64 // acknowledged writes that were looked for
}

// curvePoints is how many steps a window has at most.
const curvePoints = 170

// WindowOf chooses the window by how long the runs of a record took to recover, or took at all.
func WindowOf(r *experiment.Record) overlay.Window {
	var recoveries, lengths []float64
	for i := range r.Runs {
		run := &r.Runs[i]
		v, ok := run.Values[compare.RecoveryTime.Name]
		if ok && !v.Censored {
			recoveries = append(recoveries, v.Value)
		}
		if !run.Start.IsZero() && run.End.After(run.Start) {
			lengths = append(lengths, run.End.Sub(run.Start).Seconds())
		}
	}
	w := overlay.Window{Fault: slices.ContainsFunc(r.Runs, func(run experiment.RecordedRun) bool {
		_, ok := run.Values[compare.RecoveryTime.Name]
		return ok
	})}
	seconds := func(x float64) time.Duration {
		return time.Duration(math.Ceil(x) * float64(time.Second))
	}
	switch {
	case w.Fault:
		after := 12.
		if len(recoveries) > 0 {
			after = min(max(after, 3*slices.Max(recoveries)), 600)
		}
		w.After = seconds(after)
		w.Before = seconds(after * 5 / 12)
	case len(lengths) > 0:
		w.After = seconds(slices.Max(lengths))
	default:
		w.After = time.Minute
	}
	w.Step = max(100*time.Millisecond, (w.Before+w.After)/curvePoints).Truncate(100 * time.Millisecond)
	if (w.Before+w.After)/w.Step > curvePoints {
		w.Step += 100 * time.Millisecond
	}
	return w
}

// DetailOf is what the objects of a run, its record and the results kept beside it have beyond the
// figures; series is nil if the record is gone.
func DetailOf(
	w overlay.Window, test *v1alpha1.RedisLoadTest, faults []v1alpha1.RedisFault, kept []result.Fault,
	series *merged.Series,
) *Detail {
	d := &Detail{Use: useOf(&test.Status)}
	if v := test.Status.Verification; v != nil {
		d.ReadBack = v.Acknowledged
	}
	first := firstFault(faults)
	if first != nil {
		d.setFault(digest.ResultOf(kept, first, first.Status.InjectedAt.Time))
	}
	if series == nil || w.Fault && first == nil {
		return d
	}
	zero := time.Duration(0)
	if w.Fault {
		zero = first.Status.InjectedAt.Sub(series.Start)
	}
	columns := curve.Of(series, mostSteps)
	d.Curve = overlay.NewCurve(w, columns.Step, columns.OK, zero)
	return d
}

func (d *Detail) setFault(f *result.Fault) {
	d.Phases = f.Phases
	if f.TimeToImpact != nil {
		d.Begins = new(time.Duration(f.TimeToImpact.Value))
	}
}

// mostSteps bounds the columns of a run: two hours of 100 ms.
const mostSteps = 72000

// firstFault is the one that was injected first, without settings.
func firstFault(faults []v1alpha1.RedisFault) (first *v1alpha1.RedisFault) {
	for i := range faults {
		f := &faults[i]
		if f.Spec.Setting || f.Status.InjectedAt == nil {
			continue
		}
		if first == nil || f.Status.InjectedAt.Before(first.Status.InjectedAt) {
			first = f
		}
	}
	return first
}

// Use is what the servers and the observed pods of a run used, and what limited it.
type Use struct {
	Bottleneck string // "" = it is not known
	CPU        int64  // the highest of a server, in millicores; 0 = there was no reading
	MainThread int64
	Slow       int64 // commands in the slow logs
	Pods       []PodCPU
	// ThreadedReads and ThreadedWrites are the shares that the I/O threads of the busiest server
	// performed, from 0 to 1; nil = it did not say.
	ThreadedReads, ThreadedWrites *float64
}

// PodCPU is the highest CPU of one of the pods of an entry of spec.observe.pods, in millicores.
type PodCPU struct {
	Name string
	Max  int64
}

// useOf is what a load test says of it.
func useOf(status *v1alpha1.RedisLoadTestStatus) (u Use) {
	if b := status.Bottleneck; b != nil {
		u.Bottleneck = string(b.Component)
		if b.Pods != "" {
			u.Bottleneck += ": " + b.Pods
		}
	}
	if r := status.Redis; r != nil {
		u.CPU = r.MaxCPU
		if r.MaxMainThreadCPU != nil {
			u.MainThread = *r.MaxMainThreadCPU
		}
	}
	busiest := int64(-1)
	for i := range status.Servers {
		s := &status.Servers[i]
		if s.SlowCommands != nil {
			u.Slow += *s.SlowCommands
		}
		if s.CPU != nil && s.CPU.Mean > busiest {
			busiest = s.CPU.Mean
			u.ThreadedReads = digest.Number(s.IOThreadedReads)
			u.ThreadedWrites = digest.Number(s.IOThreadedWrites)
		}
	}
	for i := range status.Pods {
		if p := &status.Pods[i]; p.CPU != nil {
			u.Pods = append(u.Pods, PodCPU{p.Name, p.CPU.Max})
		}
	}
	return u
}

// Raise makes each figure the higher one of both, and names both bottlenecks.
func (u *Use) Raise(o *Use) {
	if o.Bottleneck != "" && !slices.Contains(strings.Split(u.Bottleneck, ", "), o.Bottleneck) {
		u.Bottleneck = strings.TrimPrefix(u.Bottleneck+", "+o.Bottleneck, ", ")
	}
	u.CPU = max(u.CPU, o.CPU)
	u.MainThread = max(u.MainThread, o.MainThread)
	u.Slow = max(u.Slow, o.Slow)
	u.ThreadedReads = higher(u.ThreadedReads, o.ThreadedReads)
	u.ThreadedWrites = higher(u.ThreadedWrites, o.ThreadedWrites)
	for _, p := range o.Pods {
		mine := u.Pod(p.Name)
		mine.Max = max(mine.Max, p.Max)
	}
}

// Pod is the entry with a name, which is added where there is none.
func (u *Use) Pod(name string) *PodCPU {
	i := slices.IndexFunc(u.Pods, func(p PodCPU) bool { return p.Name == name })
	if i < 0 {
		u.Pods = append(u.Pods, PodCPU{Name: name})
		i = len(u.Pods) - 1
	}
	return &u.Pods[i]
}

func higher(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

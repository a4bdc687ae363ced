package result

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// FaultInput is what a result of a fault says of the fault itself.
type FaultInput struct {
	Name, UID, Type string
	Targets         []string
	Start           time.Time     // of the load
	At              time.Duration // of the injection, from Start
	InjectedAt      time.Time
	Deadline        time.Duration // of the recovery
}

// NewFault returns the result of a fault from its measured impact: without phases, objectives,
// verdict and lost writes, which are known later.
func NewFault(m *impact.Impact, in FaultInput) *Fault {
	f := &Fault{
		Version:      FaultVersion,
		Name:         in.Name,
		UID:          in.UID,
		Type:         in.Type,
		Targets:      in.Targets,
		Start:        in.Start.UTC(),
		At:           Seconds(in.At),
		InjectedAt:   in.InjectedAt.UTC(),
		Deadline:     Seconds(in.Deadline),
		Baseline:     finite(m.BaselineRate),
		Lowest:       finite(m.MinRate),
		TimeToImpact: BoundsIf(m.TimeToImpact),
		TotalOutage:  new(Bounds(m.TotalOutage)),
		Recovered:    m.Recovered,
		ErrorWindow:  Seconds(m.ErrorWindow),
		Errors:       m.Errors,
		ByClass:      ErrorCounts(&m.ErrorsByClass),
		LostRequests: uint64(max(0, m.LostRequests) + 0.5),
		Reads:        failuresIf(m.Reads),
		Writes:       failuresIf(m.Writes),
		Latency: &LatencyAround{
			Before: quantilesOf(m.Before),
			During: quantilesOf(m.During),
			After:  quantilesOf(m.After),
		},
		WhileActive: whileActiveOf(m.WhileActive),
	}
	for _, d := range m.Doubts {
		f.Doubt(d)
	}
	f.setParts(m)
	switch {
	case m.Recovered:
		f.RecoveryTime = new(Bounds(m.RecoveryTime.Max(durations.Bounded{})))
		f.RecoveredShare = finite(m.RecoveredThroughput)
	case m.IsRecoveryUnknown():
		f.RecoveryAtLeast = new(Seconds(m.RecoveryTime.AtLeast))
	}
	for i := range m.Operations {
		e := &m.Operations[i]
		f.Operations = append(f.Operations, OperationHit{
			Name:     e.Name,
			Outage:   Bounds(e.Outage),
			Dip:      finite(e.Dip),
			Failures: failuresOf(&e.Failures),
		})
	}
	return f
}

// setParts sets the outage and the dip, and those of the parts.
func (f *Fault) setParts(m *impact.Impact) {
	shard := func(b durations.Bounded, number int) *FaultOutage {
		return &FaultOutage{
			BoundedSeconds: Bounds(b),
			Of:             impact.Shard,
			Shard:          &number,
		}
	}
	f.LongestOutage = &FaultOutage{BoundedSeconds: Bounds(m.Outage.Bounded), Of: m.Outage.Of}
	if m.Outage.Of == impact.Shard {
		f.LongestOutage = shard(m.Outage.Bounded, m.Outage.Shard)
	}
	o := &m.Outages
	f.Outages = &FaultOutages{
		Load:   Bounds(o.Load),
		Reads:  BoundsIf(o.Reads),
		Writes: BoundsIf(o.Writes),
		Probe:  BoundsIf(o.Probe),
	}
	if o.Shard.Known() {
		f.Outages.Shard = shard(o.Shard.Bounded, o.Shard.Shard)
	}
	if finite(m.Dip.Value) != nil {
		f.DeepestDip = &FaultDip{Share: m.Dip.Value, Of: m.Dip.Of}
	}
	f.Dips = &FaultDips{
		All:    finite(m.Dips.All),
		Reads:  finite(m.Dips.Reads),
		Writes: finite(m.Dips.Writes),
	}
}

// Bounds is a duration with its bounds, in seconds.
func Bounds(b durations.Bounded) BoundedSeconds {
	return BoundedSeconds{
		Value:   Seconds(b.Value),
		AtLeast: Seconds(b.AtLeast),
		AtMost:  Seconds(b.AtMost),
	}
}

// BoundsIf is Bounds of a duration that was measured; nil for another one.
func BoundsIf(b durations.Bounded) *BoundedSeconds {
	if !b.Known() {
		return nil
	}
	return new(Bounds(b))
}

// finite is nil for a figure that is no number, as there was nothing to measure it by.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func failuresIf(f *impact.Failures) *Failures {
	if f == nil {
		return nil
	}
	return new(failuresOf(f))
}

func failuresOf(f *impact.Failures) Failures {
	return Failures{
		First:  secondsIf(f.FirstError),
		Last:   secondsIf(f.LastError),
		Errors: f.Errors,
	}
}

// secondsIf returns nil for a negative duration: there was none.
func secondsIf(d time.Duration) *Seconds {
	if d < 0 {
		return nil
	}
	return new(Seconds(d))
}

func whileActiveOf(w *impact.WhileActive) *WhileActive {
	if w == nil {
		return nil
	}
	return &WhileActive{
		Length:                 Seconds(w.Length),
		Throughput:             finite(w.Throughput),
		ThroughputChange:       finite(w.Change),
		Latency:                quantilesOf(w.Latency),
		LatencyP50Change:       finite(w.LatencyP50Change),
		LatencyP99Change:       finite(w.LatencyP99Change),
		LatencyP50ChangeBounds: changeBoundsOf(w.P50Bounds),
		LatencyP99ChangeBounds: changeBoundsOf(w.P99Bounds),
		ErrorRate:              finite(w.ErrorRate),
		ErrorRateChange:        finite(w.ErrorRateChange),
	}
}

func changeBoundsOf(b *impact.ChangeBounds) *ChangeBounds {
	if b == nil {
		return nil
	}
	return &ChangeBounds{AtLeast: b.AtLeast, AtMost: finite(b.AtMost)}
}

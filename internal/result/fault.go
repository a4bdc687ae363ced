package result

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// FaultVersion is the version of Fault's JSON: it increases when a field is renamed, removed or
// means something else.
const FaultVersion = 1

// Fault is the result of one fault: what it did to the clients of a load. Its JSON is an API,
// described in docs/record.md: the name of a number contains its unit, and a figure that was not
// measured is absent. Its methods are the figures that all show who show one: columns, objectives,
// reports, metrics and comparisons.
type Fault struct {
	Version int      `json:"version"`
	Name    string   `json:"name"`
	UID     string   `json:"uid,omitempty"` // of the RedisFault: a name can be used again
	Type    string   `json:"type"`
	Targets []string `json:"targets,omitempty"` // pods

	// Pass, Fail or Inconclusive; absent until the fault is complete
	Verdict    string      `json:"verdict,omitempty"`
	Why        string      `json:"verdictMessage,omitempty"` // the reasons for the verdict, in words
	Objectives []Objective `json:"objectives,omitempty"`

	Start time.Time `json:"start"` // when the load began, UTC
	// the injection, from Start. All other instants count from it.
	At         Seconds   `json:"atSeconds"`
	InjectedAt time.Time `json:"injectedAt"`              // the same by the operator's clock, UTC
	Deadline   Seconds   `json:"recoveryDeadlineSeconds"` // the latest recovery that counts
	// Observed is how long the clients were observed; absent before that was over.
	Observed Seconds `json:"observedSeconds,omitempty"`

	Baseline *float64 `json:"baselinePerSecond,omitempty"` // successes before the fault
	// successes in the worst second until recovery
	Lowest *float64 `json:"lowestPerSecond,omitempty"`

	DeepestDip *FaultDip  `json:"dip,omitempty"`
	Dips       *FaultDips `json:"dips,omitempty"`
	// to the first error or the start of the first gap
	TimeToImpact  *BoundedSeconds `json:"timeToImpact,omitempty"`
	LongestOutage *FaultOutage    `json:"outage,omitempty"` // absent until there are figures
	Outages       *FaultOutages   `json:"outages,omitempty"`
	// the sum of the load's gaps until recovery
	TotalOutage *BoundedSeconds `json:"totalOutage,omitempty"`

	Recovered bool `json:"recovered"`
	// to sustained recovery; absent without one
	RecoveryTime *BoundedSeconds `json:"recoveryTime,omitempty"`
	// throughput after the recovery, as a share of Baseline
	RecoveredShare *float64 `json:"recoveredShare,omitempty"`
	// RecoveryAtLeast is the earliest that it can have been, where it is not known whether the load
	// recovered.
	RecoveryAtLeast *Seconds `json:"recoveryAtLeastSeconds,omitempty"`
	Phases          []Phase  `json:"phases,omitempty"` // of the recovery; their sum is RecoveryTime

	// from the first to the last error until recovery
	ErrorWindow Seconds `json:"errorWindowSeconds"`
	// failed, unknown and dropped requests until recovery
	Errors  uint64       `json:"errors"`
	ByClass []ErrorCount `json:"errorsByClass,omitempty"`
	// successes that were missing against the baseline until recovery
	LostRequests uint64          `json:"lostRequests"`
	Latency      *LatencyAround  `json:"latencySeconds,omitempty"`
	WhileActive  *WhileActive    `json:"whileActive,omitempty"` // of a fault that lasts
	Reads        *Failures       `json:"reads,omitempty"`       // absent if the load has none
	Writes       *Failures       `json:"writes,omitempty"`
	Operations   []OperationHit  `json:"operations,omitempty"`
	Lost         *AttributedLoss `json:"lostWrites,omitempty"` // absent while they are unknown
	Doubts       []impact.Doubt  `json:"doubts,omitempty"`     // why the figures should not be trusted
}

// FaultOutage is the longest time without a success, of what had the longest.
type FaultOutage struct {
	BoundedSeconds
	Of    string `json:"of"`              // Load, Reads, Writes, Shard or Probe
	Shard *int   `json:"shard,omitempty"` // which one, if it is of a Shard
}

// FaultOutages are the longest times without a success of the load and of its parts; nil is a part
// that there is not.
type FaultOutages struct {
	Load   BoundedSeconds  `json:"load"`
	Reads  *BoundedSeconds `json:"reads,omitempty"`
	Writes *BoundedSeconds `json:"writes,omitempty"`
	Shard  *FaultOutage    `json:"shard,omitempty"` // the longest of any
	Probe  *BoundedSeconds `json:"probe,omitempty"`
}

// FaultDip is the deepest dip of the throughput.
type FaultDip struct {
	Share float64 `json:"share"` // of the baseline that was missing in the worst second, from 0 to 1
	Of    string  `json:"of"`    // All, Reads or Writes
}

// FaultDips are the dips of all requests and of each kind, as shares; nil is a kind that there is
// not, or of which too little is known.
type FaultDips struct {
	All    *float64 `json:"all,omitempty"`
	Reads  *float64 `json:"reads,omitempty"`
	Writes *float64 `json:"writes,omitempty"`
}

// Phase is a part of a recovery.
type Phase struct {
	Name string `json:"name"` // of the event that ended it
	// Kubernetes, Redis or Client; "" = the fault itself, or unknown
	Source string         `json:"source,omitempty"`
	At     Seconds        `json:"atSeconds"` // when it ended
	Took   BoundedSeconds `json:"took"`
}

// LatencyAround is the latency of successes around a fault. A nil has none.
type LatencyAround struct {
	Before *Quantiles `json:"before,omitempty"` // of the baseline
	During *Quantiles `json:"during,omitempty"` // until recovery
	After  *Quantiles `json:"after,omitempty"`  // over the 10 s after it
}

// WhileActive is the load while a lasting fault was there. A change is relative to the baseline,
// -0.25 for a quarter less; that of the error rate is a difference.
type WhileActive struct {
	Length           Seconds    `json:"lengthSeconds"`
	Throughput       *float64   `json:"throughputPerSecond,omitempty"`
	ThroughputChange *float64   `json:"throughputChange,omitempty"`
	Latency          *Quantiles `json:"latencySeconds,omitempty"`
	LatencyP50Change *float64   `json:"latencyP50Change,omitempty"`
	LatencyP99Change *float64   `json:"latencyP99Change,omitempty"`
	// LatencyP50ChangeBounds and LatencyP99ChangeBounds are those of the changes, where load
	// generators did not run for another share of the time than before.
	LatencyP50ChangeBounds *ChangeBounds `json:"latencyP50ChangeBounds,omitempty"`
	LatencyP99ChangeBounds *ChangeBounds `json:"latencyP99ChangeBounds,omitempty"`
	ErrorRate              *float64      `json:"errorRate,omitempty"` // from 0 to 1
	ErrorRateChange        *float64      `json:"errorRateChange,omitempty"`
}

// ChangeBounds are the least and the greatest that a change can have been.
type ChangeBounds struct {
	AtLeast float64  `json:"atLeast"`
	AtMost  *float64 `json:"atMost,omitempty"` // without one the change can have been as great as any
}

// Text is the bounds in words, such as -20% to +340%, given what writes one of them.
func (b *ChangeBounds) Text(change func(float64) string) string {
	if b.AtMost == nil {
		return "at least " + change(b.AtLeast)
	}
	return change(b.AtLeast) + " to " + change(*b.AtMost)
}

// Failures are the failures of a part of the requests.
type Failures struct {
	First  *Seconds `json:"firstErrorSeconds,omitempty"` // in excess of the baseline's
	Last   *Seconds `json:"lastErrorSeconds,omitempty"`
	Errors uint64   `json:"errors"`
}

// OperationHit is the effect on one operation.
type OperationHit struct {
	Name   string         `json:"name"`
	Outage BoundedSeconds `json:"outage"`
	Dip    *float64       `json:"dip,omitempty"` // as a share
	Failures
}

// AttributedLoss is how many acknowledged ledger writes were lost because of a fault: a lower bound
// of all lost writes.
type AttributedLoss struct {
	AtLeast uint64 `json:"atLeast"`
	AtMost  uint64 `json:"atMost"`
	// when the first of them was acknowledged, at the earliest; negative before the injection
	First *Seconds `json:"firstSeconds,omitempty"`
	Last  *Seconds `json:"lastSeconds,omitempty"` // and the last, at the latest
	// whether a request failed in between; nil if nothing was lost
	SawErrors *bool `json:"sawErrors,omitempty"`
}

// Measured reports whether there are figures.
func (f *Fault) Measured() bool {
	return f.LongestOutage != nil
}

// Outage is the longest time without a success because of the fault: of the load, its reads or its
// writes, of one shard, or of the probe. A client may need any of them.
func (f *Fault) Outage() impact.Outage {
	o := f.LongestOutage
	if o == nil {
		return impact.Outage{Of: impact.Load}
	}
	out := impact.Outage{Bounded: o.Bounded(), Of: o.Of}
	if o.Shard != nil {
		out.Shard = *o.Shard
	}
	return out
}

// Dip is the deepest dip: of all requests, of those that read, or of the others.
func (f *Fault) Dip() impact.Dip {
	if f.DeepestDip == nil {
		return impact.Dip{Of: impact.All}
	}
	return impact.Dip{Value: f.DeepestDip.Share, Of: f.DeepestDip.Of}
}

// Recovery is the time from the injection to sustained recovery; false without a recovery.
func (f *Fault) Recovery() (durations.Bounded, bool) {
	if !f.Recovered || f.RecoveryTime == nil {
		return durations.Bounded{}, false
	}
	return f.RecoveryTime.Bounded(), true
}

// LostWrites are the lost writes because of the fault; nil while they are unknown.
func (f *Fault) LostWrites() *Count {
	if f.Lost == nil {
		return nil
	}
	return &Count{AtLeast: f.Lost.AtLeast, AtMost: f.Lost.AtMost}
}

// Doubt adds a doubt unless there is one with this reason.
func (f *Fault) Doubt(d impact.Doubt) {
	if !slices.ContainsFunc(f.Doubts, func(o impact.Doubt) bool { return o.Reason == d.Reason }) {
		f.Doubts = append(f.Doubts, d)
	}
}

// Conclude sets what is known when the fault is complete: the lost writes, nil = they are unknown;
// the objectives that were judged last, in addition to the others; and the verdict with its
// reasons, "" = there is none, as the fault has failed.
func (f *Fault) Conclude(lost *Losses, last []Objective, verdict, why string) {
	f.Verdict, f.Why, f.Lost = verdict, why, nil
	if lost != nil {
		f.Lost = lost.Since(time.Duration(f.At))
	}
	earlier := slices.DeleteFunc(slices.Clone(f.Objectives), func(o Objective) bool {
		return slices.ContainsFunc(last, func(l Objective) bool { return l.Name == o.Name })
	})
	f.Objectives = slices.Concat(earlier, last)
}

// Bounded is the duration as package impact has it.
func (b BoundedSeconds) Bounded() durations.Bounded {
	return durations.Bounded{
		Value:   time.Duration(b.Value),
		AtLeast: time.Duration(b.AtLeast),
		AtMost:  time.Duration(b.AtMost),
	}
}

// FaultWith returns the result of the fault with this UID and name; nil = it was not kept.
func FaultWith(faults []Fault, uid, name string) *Fault {
	for i := range faults {
		if faults[i].UID == uid && faults[i].Name == name {
			return &faults[i]
		}
	}
	return nil
}

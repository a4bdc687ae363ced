package impact

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/throughput"
)

// Reasons of a Doubt.
const (
	NoLoad           = "NoLoad"           // no success before the fault
	BaselineTooShort = "BaselineTooShort" // less than BaselineMinimum before the fault
	BaselineUnsteady = "BaselineUnsteady" // the throughput before the fault varied too much
	TooFewSamples    = "TooFewSamples"    // too few requests for significant figures
	DownBefore       = "DownBefore"       // an outage had begun before the fault, and went on
	OutageNotOver    = "OutageNotOver"    // new clients were not served until the end
	// a load generator did not run, which makes an outage uncertain
	GeneratorStalled = "GeneratorStalled"
	// whether the load recovered: a load generator did not run, or requests are too rare
	RecoveryUnknown  = "RecoveryUnknown"
	RecordIncomplete = "RecordIncomplete" // pods are missing, or the record ended too early
	IntervalsMissing = "IntervalsMissing" // a pod had to forget a part of its record
	// the plan of the load changes around the fault, in a way that no baseline follows
	PlanChanged = "PlanChanged"
	// the record around the fault is coarser than the pods recorded it
	CoarseRecord = "CoarseRecord"
	// the reads or the writes of one shard may have had an outage that is not recorded
	ShardPartlyFailed = "ShardPartlyFailed"
)

const (
	baselineVariation = 0.10 // of the 1 s rates; twice that for slow loads
	baselineTrend     = 0.05 // |Theil-Sen slope| x baseline / median; twice that for slow loads
	// successes in the baseline: with fewer, a rate is uncertain by more than 10 % (1/sqrt(n))
	fewSamples = 100
)

func (a *analysis) doubts(recovered bool) []Doubt {
	var doubts []Doubt
	doubt := func(reason, format string, args ...any) {
		doubts = append(doubts, Doubt{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	c := a.curve
	length := c.At(a.first - a.base.first)
	successes := c.OK[a.first] - c.OK[a.base.first]
	if length < a.options.BaselineMinimum {
		doubt(BaselineTooShort, "only %s were measured before the fault, at least %s are needed",
			brief(length), brief(a.options.BaselineMinimum))
	}
	switch limit := throughput.VariationLimit(baselineVariation, a.base.rate); {
	// of less than a second there is no rate: it is too short, which has been said
	case len(a.base.seconds) == 0:
	case a.base.rate <= 0:
		doubt(NoLoad, "the median of the throughput before the fault is 0: %d successes in %s", successes,
			brief(length))
	case successes < fewSamples:
		doubt(TooFewSamples,
			"only %d requests succeeded in the %s before the fault, at least %d are needed", successes,
			brief(length), fewSamples)
	case throughput.Variation(a.base.seconds) > limit:
		doubt(BaselineUnsteady,
			"throughput varied by %.1f %% (limit %.0f %%) over the %s before the fault",
			100*throughput.Variation(a.base.seconds), 100*limit, brief(length))
	default:
		drift, limit := a.drift(), throughput.VariationLimit(baselineTrend, a.base.rate)
		if math.Abs(drift) > limit {
			doubt(BaselineUnsteady,
				"throughput changed by %+.1f %% (limit %.0f %%) over the %s before the fault: what it would have been without the fault is not known",
				100*drift, 100*limit, brief(length))
		}
	}
	if why := a.planChange(recovered); why != "" {
		doubt(PlanChanged, "%s", why)
	}
	return append(doubts, a.recordDoubts(recovered)...)
}

// drift is by how much the throughput changed over the baseline, as a share of its median
// (Theil-Sen), beyond what its seconds vary at random. Nothing is left out for that where a low
// throughput alone tells of the fault: it may be the drift's.
func (a *analysis) drift() float64 {
	n := float64(len(a.base.seconds))
	if n < 3 || a.base.rate <= 0 {
		return 0
	}
	drift := throughput.TheilSen(a.base.seconds) * n / a.base.rate
	// The slope of n values that vary at random has a standard deviation of theirs x sqrt(12/n^3)
	// (least squares; Theil-Sen's is at most a tenth more).
	random := 2 * throughput.Variation(throughput.Residuals(a.base.seconds)) * math.Sqrt(12/n)
	if len(a.troubles) == 0 && a.until > a.fault.At {
		random = 0
	}
	return math.Copysign(max(0, math.Abs(drift)-random), drift)
}

// recordDoubts returns the doubts about the record itself.
func (a *analysis) recordDoubts(recovered bool) []Doubt {
	var doubts []Doubt
	doubt := func(reason, format string, args ...any) {
		doubts = append(doubts, Doubt{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	c := a.curve
	for _, hole := range c.Series.Holes() {
		if hole.From < a.judgedUntil() && c.At(a.base.first) < hole.To {
			doubt(IntervalsMissing, "%s", hole)
			break
		}
	}
	if c.Series.Step > c.Series.PodStep {
		doubt(CoarseRecord,
			"the record around the fault has %s instead of %s per interval: a dip or a recovery shorter than that is blurred",
			brief(c.Series.Step), brief(c.Series.PodStep))
	}
	if from, to, least := a.fewerPods(); to > from {
		doubt(RecordIncomplete, "only %d of %d load pods delivered between %s and %s", least,
			c.Series.Pods, brief(from), brief(to))
	}
	end := c.At(c.N)
	if c.Series.Ended() && !recovered && a.base.rate > 0 &&
		(a.fault.Deadline == 0 || end < a.fault.At+a.fault.Deadline) {
		doubt(RecordIncomplete,
			"the load ended %s after the fault, before a recovery that holds for %s could be seen",
			brief(max(0, end-a.fault.At)), brief(a.options.SustainFor))
	}
	return doubts
}

// judgedUntil is the end of the time that the figures depend on: that over which recovery is
// evaluated, and that in which the fault is active.
func (a *analysis) judgedUntil() time.Duration {
	c := a.curve
	return max(c.At(min(c.Ceil(a.until)+a.sustain, c.N)), min(a.fault.Active.To, c.At(c.N)))
}

// fewerPods returns the time in which pods are missing in the record, from the baseline to the end
// of the time that the figures depend on, and the lowest number of pods.
func (a *analysis) fewerPods() (from, to time.Duration, least int) {
	c := a.curve
	least = c.Series.Pods
	end := c.Ceil(a.judgedUntil())
	for i := a.base.first; i < end; i++ {
		if pods := c.Series.At(i).Pods; pods < c.Series.Pods {
			if to == 0 {
				from = c.At(i)
			}
			to = c.At(i + 1)
			least = min(least, pods)
		}
	}
	return from, to, least
}

// brief formats a duration for messages, to the millisecond.
func brief(d time.Duration) string {
	return d.Round(time.Millisecond).String()
}

// shardDoubt returns a doubt if all reads or all writes of one shard may have failed for longer
// than the outages say, by a second or more: a success of the other kind ends a gap of the shard,
// and one of another shard a gap of the kind.
func (a *analysis) shardDoubt(m *Impact) *Doubt {
	if len(a.kinds) == 0 || len(a.shards) < 2 {
		return nil
	}
	known := m.Outage.AtMost + a.curve.Width()
	var doubt *Doubt
	for shard := range a.shards {
		first, end := a.failingAt(shard)
		length := a.curve.At(end - first)
		if length <= known {
			continue
		}
		if kind := a.lacking(shard, first, end); kind != "" {
			known = length
			doubt = &Doubt{
				ShardPartlyFailed,
				fmt.Sprintf(
					"requests to shard %d failed for %s while others to it succeeded, and at least half as many %s are missing as it "+
						"usually serves: if it served none of them, their outage is that long, and no outage has it",
					shard, brief(length), strings.ToLower(kind)),
			}
		}
	}
	return doubt
}

// failingAt returns the longest part [first, end) from t0 to recovery in which, in every second,
// more requests failed at a shard than in any second of the baseline.
func (a *analysis) failingAt(shard int) (first, end int) {
	c := a.curve
	errors := make([]uint64, c.N+1)
	for i := range c.N {
		errors[i+1] = errors[i]
		if counts := c.Series.At(i).Shards; shard < len(counts) {
			errors[i+1] += counts[shard].Errors
		}
	}
	usual := uint64(0)
	for i := a.base.first; i+c.Wide <= a.first; i++ {
		usual = max(usual, errors[i+c.Wide]-errors[i])
	}
	begin := a.first // of the windows that exceed it
	for i := a.first; i+c.Wide <= c.N && c.At(i) <= a.until; i++ {
		if errors[i+c.Wide]-errors[i] <= usual {
			begin = i + 1
			continue
		}
		from := begin
		if begin > a.first {
			from += c.Wide - 1 // the first window exceeds it by its last interval
		}
		if i+1-from > end-first {
			first, end = from, i+1
		}
	}
	return first, end
}

// lacking returns the kind of which half as many requests are missing in the intervals [first, end)
// as a shard usually serves; "" = neither.
func (a *analysis) lacking(shard, first, end int) string {
	served, all := 0.0, 0.0
	for i := range a.shards {
		ok := float64(a.inBaseline().AtShard(i))
		if all += ok; i == shard {
			served = ok
		}
	}
	if all == 0 {
		return ""
	}
	for i := range a.kinds {
		c := throughput.CurveOfOps(a.curve.Series, gaps.Operations(a.curve.Series, a.kinds[i].name))
		expected := throughput.Median(a.expected.SecondsBefore(c, a.base.first, a.first)) *
			a.expected.Mean(first, end)
		if expected > 0 && c.Rate(first, end) <= (1-served/all/2)*expected {
			return a.kinds[i].name
		}
	}
	return ""
}

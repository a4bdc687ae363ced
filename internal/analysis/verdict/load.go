package verdict

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// Load evaluates the objectives of a load test, and sets them and the verdict in its result, too.
// others have been evaluated already.
func Load(
	objectives *v1alpha1.Objectives, r *result.Load, others ...result.Objective,
) Judgement {
	judged := &r.Total
	if objectives != nil && r.OutsideFaults != nil && objectives.Over != v1alpha1.OverEverything {
		judged = r.OutsideFaults
	}
	r.Objectives = append(ofLoad(objectives, r, judged), others...)
	if d := stalled(r, judged); d != nil {
		r.Doubts = append(r.Doubts, *d)
	}
	r.Doubts = slices.Concat(r.Doubts, noRequests(&r.Total))
	all := InStatus(r.Objectives)
	j := judge(all, r.Doubts, failure(r), lostTooMuch(all, r.Doubts, true)).beside(lossesOf(r.Verification)).
		besideLocks(r.Guarantees)
	r.Verdict, r.Why = string(j.Verdict), j.Message
	return j
}

// minThroughput is the objective of that name.
const minThroughput = "minThroughput"

func ofLoad(
	objectives *v1alpha1.Objectives, r *result.Load, judged *result.Operation,
) []result.Objective {
	if objectives == nil {
		return nil
	}
	achieved := exactly(judged.Throughput)
	if s := judged.Stalled; s != nil {
		achieved.atMost = max(achieved.value, s.Throughput)
	}
	return append(ofRate(objectives, judged), set(
		throughput(minThroughput, objectives.MinThroughput, achieved, judged.Requests > 0),
		lostWrites(objectives.MaxLostWrites, r.Verification),
		lockOverlap(objectives.MaxLockOverlap, r.Guarantees),
	)...)
}

// MaxLockOverlap is the objective of that name.
const MaxLockOverlap = "maxLockOverlap"

// lockOverlap evaluates the longest time for which two users counted on the same lock. Without the
// figures of all load pods it may have been any longer, and without a lock that was taken nothing
// is known.
func lockOverlap(limit *metav1.Duration, g *result.Guarantees) *result.Objective {
	if g == nil || g.Lock == nil || g.Lock.Taken == 0 {
		return atMost(MaxLockOverlap, limit, durations.Bounded{}, false)
	}
	d := durations.Exactly(time.Duration(g.Lock.LongestOverlap))
	missed := limit != nil && d.AtLeast > limit.Duration
	return atMost(MaxLockOverlap, limit, d, g.Untold == "" || missed)
}

// failure returns why a load failed, whatever its objectives are; "" = it did not.
func failure(r *result.Load) string {
	switch s := r.Search; {
	case s != nil && s.Done && s.Rate == 0:
		return s.Message
	case r.Total.Requests > 0 && r.Total.OK == 0:
		return "no request succeeded"
	}
	return ""
}

// ofRate evaluates the objectives that depend on the rate of the load: those of latency and errors.
func ofRate(o *v1alpha1.Objectives, judged *result.Operation) []result.Objective {
	latency := func(name string, limit *metav1.Duration, of func(
		*result.Quantiles,
	) result.Seconds,
	) *result.Objective {
		if judged.Latency == nil {
			return atMost(name, limit, durations.Bounded{}, false)
		}
		d := durations.Exactly(time.Duration(of(judged.Latency)))
		if s := judged.Stalled; s != nil && s.Latency != nil {
			d.AtLeast = min(d.Value, time.Duration(of(s.Latency)))
		}
		return atMost(name, limit, d, true)
	}
	errors := exactly(judged.ErrorRate)
	if s := judged.Stalled; s != nil {
		errors.atLeast = min(errors.value, s.ErrorRate)
	}
	return set(
		latency("maxLatencyP50", o.MaxLatencyP50, func(q *result.Quantiles) result.Seconds {
			return q.P50
		}),
		latency("maxLatencyP99", o.MaxLatencyP99, func(q *result.Quantiles) result.Seconds {
			return q.P99
		}),
		latency("maxLatencyP999", o.MaxLatencyP999, func(q *result.Quantiles) result.Seconds {
			return q.P999
		}),
		share("maxErrorRate", o.MaxErrorRate, errors, judged.Requests > 0),
	)
}

func noRequests(o *result.Operation) []impact.Doubt {
	if o.Requests > 0 {
		return nil
	}
	return []impact.Doubt{{Reason: "NoRequests", Message: "no request was made in the measured time"}}
}

func lossesOf(v *result.Verification) *result.Count {
	if v == nil {
		return nil
	}
	return v.LostWrites()
}

func lostWrites(limit *int64, v *result.Verification) *result.Objective {
	return countWithin(MaxLostWrites, limit, lossesOf(v))
}

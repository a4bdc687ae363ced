package verdict

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// keepsUp is the minimum share of a trial's requests that must succeed within its window, apart from those that may fail: the arrivals are
// evenly spaced, so fewer successes mean a growing queue, or errors without an objective.
const keepsUp = 0.98

// Trial evaluates one rate of a search, in requests/s, by the figures of its window: the objectives that depend on the rate, and whether
// the load reached the rate. It is void if the record is too coarse for figures of the window.
func Trial(objectives *v1alpha1.Objectives, rate float64, summary impact.Summary) search.Judgement {
	if summary.Measured == 0 || summary.OK > 0 && summary.Latency.Count == 0 {
		return search.Judgement{Void: true}
	}
	figures := result.OperationOf("all", &summary.Figures)
	least := keepsUp * rate
	var judged []result.Objective
	if objectives != nil {
		judged = ofRate(objectives, &figures)
		if objectives.MaxErrorRate != nil {
			if share, err := percent(*objectives.MaxErrorRate); err == nil {
				least *= 1 - share
			}
		}
	}
	judgement := judge(inStatus(judged), noRequests(&figures), "")
	if judgement.Verdict == v1alpha1.VerdictPass && figures.Throughput < least {
		return search.Judgement{Why: fmt.Sprintf("only %s of %s requests/s succeeded", format.Rate(figures.Throughput), format.Rate(rate))}
	}
	return search.Judgement{Met: judgement.Verdict == v1alpha1.VerdictPass, Why: judgement.Message}
}

// expected is the number of requests that the limit of a share must allow in a trial for the share to be significant.
const expected = 10

// Significant is the number of requests that a trial needs, so that its objectives allow ten of them to exceed the limit: 1,000 for a p99,
// 10,000 for a p99.9 or an error rate of 0.1 %. At most a million.
func Significant(o *v1alpha1.Objectives) float64 {
	least := 100.0 // one reply across the window's edge must not miss keepsUp
	if o == nil {
		return least
	}
	if o.MaxLatencyP99 != nil {
		least = expected / 0.01
	}
	if o.MaxLatencyP999 != nil {
		least = expected / 0.001
	}
	if o.MaxErrorRate != nil {
		if share, err := percent(*o.MaxErrorRate); err == nil && share > 0 {
			least = max(least, expected/share)
		}
	}
	return min(least, 1e6)
}

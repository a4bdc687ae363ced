package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/result"
)

// keepsUp is the minimum share of a trial's requests that must succeed within its window, apart
// from those that may fail: the arrivals are evenly spaced, so fewer successes mean a growing
// queue, or errors without an objective.
const keepsUp = 0.98

// Trial evaluates one rate of a search of a plan, in requests/s, by the figures of its window: the
// objectives that depend on the rate, and whether the load reached the rate. It is void if the
// record is too coarse for figures of the window, or if the rate may only have been missed because
// a load generator did not run; stalls are those of the window, nil = it always ran.
func Trial(
	objectives *v1alpha1.Objectives, p *plan.Plan, rate float64, sum summary.Summary,
	stalls *summary.Stalls,
) search.Judgement {
	if sum.Measured == 0 || sum.OK > 0 && sum.Latency.Count == 0 {
		return search.Judgement{Void: true}
	}
	figures := result.OperationOf("all", &sum.Figures)
	figures.SetStalled(stalls, p)
	least := keepsUp * rate
	var judged []result.Objective
	if objectives != nil {
		judged = ofRate(objectives, &figures)
		if objectives.MaxErrorRate != nil {
			share, err := percent(*objectives.MaxErrorRate)
			if err == nil {
				least *= 1 - share
			}
		}
	}
	judgement := judge(InStatus(judged), noRequests(&figures), "", "")
	slow := fmt.Sprintf("only %s of %s requests/s succeeded", format.Rate(figures.Throughput),
		format.Rate(rate))
	switch s := figures.Stalled; {
	case s != nil && judgement.Verdict == v1alpha1.VerdictInconclusive && figures.Requests > 0:
		return search.Judgement{Void: true, Why: fmt.Sprintf("%s: %s", s, judgement.Message)}
	case judgement.Verdict != v1alpha1.VerdictPass || figures.Throughput >= least:
	// what was due may still wait to be sent
	case s != nil && figures.Throughput*stalls.Faster >= least:
		return search.Judgement{Void: true, Why: fmt.Sprintf("%s: %s", s, slow)}
	default:
		return search.Judgement{Why: slow}
	}
	return search.Judgement{Met: judgement.Verdict == v1alpha1.VerdictPass, Why: judgement.Message}
}

// expected is the number of requests that the limit of a share must allow in a trial for the share
// to be significant.
const expected = 10

// Significant is the number of requests that a trial needs, so that its objectives allow ten of
// them to exceed the limit: 1,000 for a p99, 10,000 for a p99.9 or an error rate of 0.1 %. At most
// a million.
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
		share, err := percent(*o.MaxErrorRate)
		if err == nil && share > 0 {
			least = max(least, expected/share)
		}
	}
	return min(least, 1e6)
}

// Limits of GeneratorStalled for a load without objectives.
const (
	stalledFor   = 20 * time.Millisecond // of the 99th percentile
	stalledShare = 0.5                   // of it, and of the throughput
)

// stalled returns a doubt if it depends on stalls of the load generator, or on its waiting for a
// CPU, whether an objective is met; without objectives, if they may be most of the latency, or have
// cost half of the throughput and more; and if they cost a tenth of the throughput of a closed
// loop, as all its figures are those of a smaller load then. An objective that is missed in any
// case stays so, but for that throughput: Redis may have had to wait for a CPU more often, too, as
// it went to sleep whenever the load generator waited.
func stalled(r *result.Load, judged *result.Operation) *impact.Doubt {
	s := judged.Stalled
	if s == nil {
		return nil
	}
	starved := r.Starved()
	inconclusive, missed := openObjectives(r, starved != "")
	if missed {
		return nil
	}
	if starved != "" {
		return &impact.Doubt{
			Reason:  impact.GeneratorStarved,
			Message: strings.Join(append([]string{starved}, inconclusive...), ", ") + ". " + lessBusy,
		}
	}
	if len(r.Objectives) == 0 && (r.Bottleneck != nil && r.Bottleneck.Stalled || s.Starved()) {
		inconclusive = uncertain(judged)
	}
	if len(inconclusive) == 0 {
		return nil
	}
	reason := impact.GeneratorStalled
	if s.MostlyWaited() {
		reason = impact.GeneratorStarved
	}
	return &impact.Doubt{
		Reason: reason,
		Message: fmt.Sprintf("%s: it sent late, or not at all, what was due then: %s. %s", s,
			strings.Join(inconclusive, ", "), lessBusy),
	}
}

// openObjectives returns why objectives are inconclusive, and whether one is missed in any case: that
// of throughput is not if the load generator was starved.
func openObjectives(r *result.Load, starved bool) (inconclusive []string, missed bool) {
	for _, o := range r.Objectives {
		switch {
		case o.Met != nil && !*o.Met:
			missed = missed || !starved || o.Name != minThroughput
		case o.Met == nil && o.AtLeast != nil && o.Unit != result.UnitCount:
			inconclusive = append(inconclusive, o.Message)
		}
	}
	return inconclusive, missed
}

// lessBusy is what helps a load generator that does not get a CPU.
const lessBusy = "Use a second load pod on another node, a higher CPU limit, or a machine that is less busy"

// uncertain lists the figures of a load without objectives that stalls make so uncertain that they
// say little.
func uncertain(judged *result.Operation) (list []string) {
	s := judged.Stalled
	if p99 := judged.Latency; p99 != nil && s.Latency != nil {
		atLeast, value := time.Duration(s.Latency.P99), time.Duration(p99.P99)
		apart := value - atLeast
		if apart > max(stalledFor, time.Duration(stalledShare*float64(value))) {
			list = append(list, fmt.Sprintf("the p99 is between %s and %s", format.Duration(atLeast),
				format.Duration(value)))
		}
	}
	if judged.Throughput < stalledShare*s.Throughput {
		list = append(list, fmt.Sprintf("the throughput is between %s/s and %s/s",
			format.Rate(judged.Throughput), format.Rate(s.Throughput)))
	}
	return list
}

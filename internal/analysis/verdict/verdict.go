// Package verdict judges a finished test: a chain of pure checks over the figures, one per objective.
package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
)

// Fault is one fault that hit the test.
type Fault struct {
	Name      string
	Confirmed bool // Redis and the cluster show its effect
	Impact    impact.Impact
}

// Figures are what a test is judged by.
type Figures struct {
	Summary impact.Summary
	Faults  []Fault
	Lost    *int64         // acknowledged ledger writes that were lost; nil = unknown
	Missed  string         // what was missed beside the objectives; "" = nothing
	Doubts  []impact.Doubt // about the whole run: lost pods, missing intervals, skewed clocks
}

// Judgement is the outcome. Reason and Message are for the condition ObjectivesMet.
type Judgement struct {
	Verdict    v1alpha1.Verdict
	Objectives []v1alpha1.ObjectiveResult
	Reason     string
	Message    string
}

// Judge applies the objectives. With a doubt about the figures nothing can be said: Inconclusive. Else a broken limit is a Fail,
// and an objective that had nothing to be judged by (no fault hit the test, say) makes a test Inconclusive that would pass.
func Judge(objectives *v1alpha1.Objectives, f Figures) Judgement {
	var j Judgement
	if objectives != nil {
		for _, check := range checks {
			if result, asked := check(objectives, f); asked {
				j.Objectives = append(j.Objectives, result)
			}
		}
	}
	var broken, unknown []string
	if f.Missed != "" {
		broken = append(broken, f.Missed)
	}
	for _, o := range j.Objectives {
		switch {
		case o.Met == nil:
			unknown = append(unknown, fmt.Sprintf("%s has nothing to be judged by", o.Name))
		case !*o.Met:
			broken = append(broken, fmt.Sprintf("%s is %s, limit %s", o.Name, o.Actual, o.Limit))
		}
	}
	var doubts []string
	for _, d := range f.doubts() {
		doubts = append(doubts, d.Message)
	}
	switch {
	case len(doubts) > 0:
		j.Verdict, j.Reason, j.Message = v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, strings.Join(doubts, "; ")
	case len(broken) > 0:
		j.Verdict, j.Reason, j.Message = v1alpha1.VerdictFail, v1alpha1.ReasonObjectivesNotMet, strings.Join(broken, "; ")
	case len(unknown) > 0:
		j.Verdict, j.Reason, j.Message = v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, strings.Join(unknown, "; ")
	case len(j.Objectives) == 0:
		j.Verdict, j.Reason, j.Message = v1alpha1.VerdictPass, v1alpha1.ReasonSucceeded, "no objective was set, and nothing is in doubt"
	default:
		j.Verdict, j.Reason, j.Message = v1alpha1.VerdictPass, v1alpha1.ReasonSucceeded, fmt.Sprintf("all %d objectives are met", len(j.Objectives))
	}
	return j
}

func (f Figures) doubts() []impact.Doubt {
	all := slices.Clone(f.Doubts)
	if f.Summary.Requests == 0 {
		all = append(all, impact.Doubt{Reason: "NoRequests", Message: "no request was made in the measured time"})
	}
	for _, fault := range f.Faults {
		if !fault.Confirmed {
			all = append(all, impact.Doubt{Reason: "EffectUnconfirmed", Message: fmt.Sprintf("the effect of fault %s is not confirmed", fault.Name)})
		}
		for _, d := range fault.Impact.Doubts {
			all = append(all, impact.Doubt{Reason: d.Reason, Message: fmt.Sprintf("fault %s: %s", fault.Name, d.Message)})
		}
	}
	return all
}

// check judges one objective; asked says whether it was set.
type check func(*v1alpha1.Objectives, Figures) (result v1alpha1.ObjectiveResult, asked bool)

var checks = []check{
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MinThroughput == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		limit, err := strconv.ParseFloat(*o.MinThroughput, 64)
		return judged("minThroughput", *o.MinThroughput, format.Rate(f.Summary.Throughput), err == nil && f.Summary.Requests > 0, f.Summary.Throughput >= limit), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxLatencyP50 == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		return latency("maxLatencyP50", o.MaxLatencyP50.Duration, f.Summary.Latency.P50, f.Summary.Latency.Count), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxLatencyP99 == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		return latency("maxLatencyP99", o.MaxLatencyP99.Duration, f.Summary.Latency.P99, f.Summary.Latency.Count), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxLatencyP999 == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		return latency("maxLatencyP999", o.MaxLatencyP999.Duration, f.Summary.Latency.P999, f.Summary.Latency.Count), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxErrorRate == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		limit, err := percent(*o.MaxErrorRate)
		return judged("maxErrorRate", *o.MaxErrorRate, format.Share(f.Summary.ErrorRate), err == nil && f.Summary.Requests > 0, f.Summary.ErrorRate <= limit), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxTPSDip == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		limit, err := percent(*o.MaxTPSDip)
		worst := 0.0
		for _, fault := range f.Faults {
			worst = max(worst, fault.Impact.Dip)
		}
		return judged("maxTPSDip", *o.MaxTPSDip, format.Share(worst), err == nil && len(f.Faults) > 0, worst <= limit), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxOutage == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		var worst time.Duration
		for _, fault := range f.Faults {
			worst = max(worst, fault.Impact.Outage, fault.Impact.ShardOutage) // to the clients of a shard it is all there is
		}
		return judged("maxOutage", format.Duration(o.MaxOutage.Duration), format.Duration(worst), len(f.Faults) > 0, worst <= o.MaxOutage.Duration), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxRecoveryTime == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		var worst time.Duration
		for _, fault := range f.Faults {
			if !fault.Impact.Recovered {
				return judged("maxRecoveryTime", format.Duration(o.MaxRecoveryTime.Duration), v1alpha1.ReasonNotRecovered, true, false), true
			}
			worst = max(worst, fault.Impact.RecoveryTime)
		}
		return judged("maxRecoveryTime", format.Duration(o.MaxRecoveryTime.Duration), format.Duration(worst), len(f.Faults) > 0, worst <= o.MaxRecoveryTime.Duration), true
	},
	func(o *v1alpha1.Objectives, f Figures) (v1alpha1.ObjectiveResult, bool) {
		if o.MaxLostWrites == nil {
			return v1alpha1.ObjectiveResult{}, false
		}
		lost := int64(0)
		if f.Lost != nil {
			lost = *f.Lost
		}
		return judged("maxLostWrites", strconv.FormatInt(*o.MaxLostWrites, 10), strconv.FormatInt(lost, 10), f.Lost != nil, lost <= *o.MaxLostWrites), true
	},
}

func latency(name string, limit, actual time.Duration, samples uint64) v1alpha1.ObjectiveResult {
	return judged(name, format.Duration(limit), format.Duration(actual), samples > 0, actual <= limit)
}

func judged(name, limit, actual string, known, met bool) v1alpha1.ObjectiveResult {
	if !known {
		return v1alpha1.ObjectiveResult{Name: name, Limit: limit}
	}
	return v1alpha1.ObjectiveResult{Name: name, Limit: limit, Actual: actual, Met: &met}
}

func percent(text string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	return n / 100, err
}

package redisloadtest

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/search"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record/merged"
)

// observeSearch evaluates the current trial, if the record contains its window, and determines the
// next one.
func observeSearch(s *scope.Test, now time.Time) {
	planned := s.Plan.Shape.Search
	if planned == nil || s.Seen.StartedAt.IsZero() || s.Run == nil {
		return
	}
	status := s.Test.Status.Search
	if status == nil { // the first rate is in the pods' plan
		status = &v1alpha1.SearchStatus{}
		status.Trials = []v1alpha1.SearchTrial{
			trial(s, search.Trial{Rate: planned.From, At: s.Plan.Shape.MeasuredFrom()}),
		}
		s.Test.Status.Search = status
	}
	f := &scope.Searching{}
	for i := range status.Trials {
		t := &status.Trials[i]
		f.Trials = append(f.Trials, search.Trial{
			Rate:   float64(t.Rate),
			At:     t.StartTime.Sub(s.Seen.StartedAt),
			Judged: t.Met != nil,
			Met:    t.Met != nil && *t.Met,
			Why:    t.Message,
		})
	}
	s.Searching = f
	judgeTrial(s)
	f.Next = search.Spec(*planned).Next(f.Trials)
	if f.Next.Rate > 0 {
		_, end := planned.Window(f.Next.Rate, trialBegin(s, now))
		if end > s.Plan.Shape.Length() {
			f.Cut = f.Next.CutOff()
		}
	}
	status.Rate = int32(math.Round(f.Next.Found))
	status.Done = f.Next.Done
	status.Message = digest.Truncate(f.Message(), 1024)
	s.Seen.Search = &lifecycle.Search{
		Due:     stepDue(s),
		Message: status.Message,
		Until:   judgeableAt(s),
	}
}

// judgeTrial evaluates the current trial once this process has sent its rate to all pods: a trial
// that another process stored may not have been sent.
func judgeTrial(s *scope.Test) {
	f, status := s.Searching, s.Test.Status.Search
	if !lastTrialSent(s) {
		return
	}
	s.Run.Read(func(series *merged.Series) {
		known := time.Duration(series.Complete()) * series.Step
		f.Trials, _ = search.Spec(*s.Plan.Shape.Search).Judge(f.Trials, known,
			func(t search.Trial, from, to time.Duration) search.Judgement {
				sum := summary.SummarizeWindow(series, from, to)
				judgement := verdict.Trial(s.Test.Spec.Objectives, s.Plan, t.Rate, sum,
					summary.StallsWithin(series, from, to))
				if judgement.Void {
					return judgement
				}
				judged := &status.Trials[len(status.Trials)-1]
				judged.Met = &judgement.Met
				judged.Throughput = v1alpha1.DecimalOf(sum.Throughput)
				judged.ErrorRate = v1alpha1.DecimalOf(sum.ErrorRate)
				if !judgement.Met {
					judged.Message = digest.Truncate(judgement.Why, 512)
				}
				if sum.Latency.Count > 0 {
					judged.LatencyP99 = new(v1alpha1.DurationOf(sum.Latency.P99))
				}
				return judgement
			})
	})
	status.Trials = status.Trials[:len(f.Trials)] // without a void trial
}

// stepDue reports whether a rate or the end must be sent to the pods. A stored trial may not have
// been sent.
func stepDue(s *scope.Test) bool {
	switch f := s.Searching; {
	case f.Ends():
		return !s.Run.EndSent
	case f.Next.Rate > 0:
		return true
	}
	return !lastTrialSent(s)
}

// judgeableAt returns when the current trial can be evaluated; the zero time if there is none.
func judgeableAt(s *scope.Test) time.Time {
	t, ok := search.InProgress(s.Searching.Trials)
	if !ok {
		return time.Time{}
	}
	_, to := s.Plan.Shape.Search.Window(t.Rate, t.At)
	return s.Seen.StartedAt.Add(s.Session.ClockShift + to + collect.DefaultPullEvery)
}

// step sends the rate of the next trial, or the end, to the pods. The trial is stored first:
// another process sends it again, which has no effect on pods that have it.
func (r *Reconciler) step(ctx context.Context, s *scope.Test) state.Outcome {
	if s.Searching.Ends() {
		return r.endSearch(ctx, s)
	}
	f, status := s.Searching, s.Test.Status.Search
	if f.Next.Rate > 0 {
		t := search.Trial{Rate: f.Next.Rate, At: trialBegin(s, r.Clock.Now())}
		f.Trials = append(f.Trials, t)
		status.Trials = append(status.Trials, trial(s, t))
		if err := r.storeStatus(ctx, s); err != nil {
			return state.Outcome{Err: err}
		}
	}
	last := len(f.Trials) - 1
	err := r.sendStep(ctx, s, f.Trials[last].At, f.Trials[last].Rate)
	switch {
	case err == nil:
		s.Run.TrialSent = f.Trials[last].At
		return state.Outcome{Again: true}
	case collect.Refused(err) && sinceStart(s, r.Clock.Now()) >= f.Trials[last].At:
		// The trial began before every pod had its rate: discard it.
		status.Trials = status.Trials[:last]
		err = r.storeStatus(ctx, s)
		return state.Outcome{Again: err == nil, Err: err}
	}
	return state.Outcome{Err: err}
}

// endSearch stores the result, and then ends the load.
func (r *Reconciler) endSearch(ctx context.Context, s *scope.Test) state.Outcome {
	if err := r.storeStatus(ctx, s); err != nil {
		return state.Outcome{Err: err}
	}
	// otherwise the load ends earlier anyway
	at := trialBegin(s, r.Clock.Now())
	if at < s.Plan.Shape.Length() {
		if err := r.sendStep(ctx, s, at, 0); err != nil {
			return state.Outcome{Err: err}
		}
	}
	s.Run.EndSent = true
	return state.Outcome{Again: true}
}

// lastTrialSent reports whether all pods have the rate of the last trial. The first rate is in
// their plan.
func lastTrialSent(s *scope.Test) bool {
	t, ok := search.InProgress(s.Searching.Trials)
	return !ok || t.At == s.Plan.Shape.MeasuredFrom() || t.At == s.Run.TrialSent
}

// trial converts a trial for the status.
func trial(s *scope.Test, t search.Trial) v1alpha1.SearchTrial {
	return v1alpha1.SearchTrial{
		Rate:      int32(math.Round(t.Rate)),
		StartTime: metav1.NewMicroTime(s.Seen.StartedAt.Add(t.At)),
	}
}

// trialBegin returns when a trial that is sent now begins, from the start.
func trialBegin(s *scope.Test, now time.Time) time.Duration {
	return search.Begin(sinceStart(s, now), s.Plan.Interval)
}

// sinceStart returns the time since the start by the clocks of the pods, even if this process's
// clock was changed.
func sinceStart(s *scope.Test, now time.Time) time.Duration {
	return now.Sub(s.Seen.StartedAt) - s.Session.ClockShift
}

func (r *Reconciler) sendStep(
	ctx context.Context, s *scope.Test, at time.Duration, rate float64,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.Run.Session.Step(ctx, at, rate); err != nil {
		return fmt.Errorf("send a step of the search to the load pods: %w", err)
	}
	return nil
}

package redisloadtest

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
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
func (s *scope) observeSearch(now time.Time) {
	planned := s.plan.Shape.Search
	if planned == nil || s.seen.StartedAt.IsZero() || s.run == nil {
		return
	}
	status := s.test.Status.Search
	if status == nil { // the first rate is in the pods' plan
		status = &v1alpha1.SearchStatus{}
		status.Trials = []v1alpha1.SearchTrial{
			s.trial(search.Trial{Rate: planned.From, At: s.plan.Shape.MeasuredFrom()}),
		}
		s.test.Status.Search = status
	}
	f := &searching{}
	for i := range status.Trials {
		t := &status.Trials[i]
		f.trials = append(f.trials, search.Trial{
			Rate:   float64(t.Rate),
			At:     t.StartTime.Sub(s.seen.StartedAt),
			Judged: t.Met != nil,
			Met:    t.Met != nil && *t.Met,
			Why:    t.Message,
		})
	}
	s.searching = f
	s.judgeTrial()
	f.next = search.Spec(*planned).Next(f.trials)
	if f.next.Rate > 0 {
		if _, end := planned.Window(f.next.Rate, s.trialBegin(now)); end > s.plan.Shape.Length() {
			f.cut = f.next.CutOff()
		}
	}
	status.Rate = int32(math.Round(f.next.Found))
	status.Done = f.next.Done
	status.Message = digest.Truncate(f.message(), 1024)
	s.seen.Search = &lifecycle.Search{
		Due:     s.stepDue(),
		Message: status.Message,
		Until:   s.judgeableAt(),
	}
}

// judgeTrial evaluates the current trial once this process has sent its rate to all pods: a trial
// that another process stored may not have been sent.
func (s *scope) judgeTrial() {
	f, status := s.searching, s.test.Status.Search
	if !s.lastTrialSent() {
		return
	}
	s.run.Read(func(series *merged.Series) {
		known := time.Duration(series.Complete()) * series.Step
		f.trials, _ = search.Spec(*s.plan.Shape.Search).Judge(f.trials, known,
			func(t search.Trial, from, to time.Duration) search.Judgement {
				sum := summary.SummarizeWindow(series, from, to)
				judgement := verdict.Trial(s.test.Spec.Objectives, s.plan, t.Rate, sum,
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
					judged.LatencyP99 = new(v1alpha1.MicrosecondsOf(sum.Latency.P99))
				}
				return judgement
			})
	})
	status.Trials = status.Trials[:len(f.trials)] // without a void trial
}

// stepDue reports whether a rate or the end must be sent to the pods. A stored trial may not have
// been sent.
func (s *scope) stepDue() bool {
	switch f := s.searching; {
	case f.ends():
		return !s.run.EndSent
	case f.next.Rate > 0:
		return true
	}
	return !s.lastTrialSent()
}

// judgeableAt returns when the current trial can be evaluated; the zero time if there is none.
func (s *scope) judgeableAt() time.Time {
	t, ok := search.InProgress(s.searching.trials)
	if !ok {
		return time.Time{}
	}
	_, to := s.plan.Shape.Search.Window(t.Rate, t.At)
	return s.seen.StartedAt.Add(s.session.ClockShift + to + collect.DefaultPullEvery)
}

// step sends the rate of the next trial, or the end, to the pods. The trial is stored first:
// another process sends it again, which has no effect on pods that have it.
func (r *Reconciler) step(ctx context.Context, s *scope) outcome {
	if s.searching.ends() {
		return r.endSearch(ctx, s)
	}
	f, status := s.searching, s.test.Status.Search
	if f.next.Rate > 0 {
		t := search.Trial{Rate: f.next.Rate, At: s.trialBegin(r.Clock.Now())}
		f.trials = append(f.trials, t)
		status.Trials = append(status.Trials, s.trial(t))
		if err := r.storeStatus(ctx, s); err != nil {
			return outcome{err: err}
		}
	}
	last := len(f.trials) - 1
	err := r.sendStep(ctx, s, f.trials[last].At, f.trials[last].Rate)
	switch {
	case err == nil:
		s.run.TrialSent = f.trials[last].At
		return outcome{again: true}
	case collect.Refused(err) && s.sinceStart(r.Clock.Now()) >= f.trials[last].At:
		// The trial began before every pod had its rate: discard it.
		status.Trials = status.Trials[:last]
		err = r.storeStatus(ctx, s)
		return outcome{again: err == nil, err: err}
	}
	return outcome{err: err}
}

// endSearch stores the result, and then ends the load.
func (r *Reconciler) endSearch(ctx context.Context, s *scope) outcome {
	if err := r.storeStatus(ctx, s); err != nil {
		return outcome{err: err}
	}
	// otherwise the load ends earlier anyway
	if at := s.trialBegin(r.Clock.Now()); at < s.plan.Shape.Length() {
		if err := r.sendStep(ctx, s, at, 0); err != nil {
			return outcome{err: err}
		}
	}
	s.run.EndSent = true
	return outcome{again: true}
}

// lastTrialSent reports whether all pods have the rate of the last trial. The first rate is in
// their plan.
func (s *scope) lastTrialSent() bool {
	t, ok := search.InProgress(s.searching.trials)
	return !ok || t.At == s.plan.Shape.MeasuredFrom() || t.At == s.run.TrialSent
}

// trial converts a trial for the status.
func (s *scope) trial(t search.Trial) v1alpha1.SearchTrial {
	return v1alpha1.SearchTrial{
		Rate:      int32(math.Round(t.Rate)),
		StartTime: metav1.NewMicroTime(s.seen.StartedAt.Add(t.At)),
	}
}

// trialBegin returns when a trial that is sent now begins, from the start.
func (s *scope) trialBegin(now time.Time) time.Duration {
	return search.Begin(s.sinceStart(now), s.plan.Interval)
}

// sinceStart returns the time since the start by the clocks of the pods, even if this process's
// clock was changed.
func (s *scope) sinceStart(now time.Time) time.Duration {
	return now.Sub(s.seen.StartedAt) - s.session.ClockShift
}

func (r *Reconciler) sendStep(ctx context.Context, s *scope, at time.Duration, rate float64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.run.Session.Step(ctx, at, rate); err != nil {
		return fmt.Errorf("send a step of the search to the load pods: %w", err)
	}
	return nil
}

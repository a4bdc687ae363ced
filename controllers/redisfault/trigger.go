package redisfault

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record/merged"
)

// observeQuiet determines where a baseline can begin: after the warm-up, after every earlier fault
// on the same load has settled, and with the test of a benchmark that runs at the injection. The
// outage of one fault would make the baseline of the next one unsteady.
func (r *Reconciler) observeQuiet(ctx context.Context, s *scope) error {
	if s.test == nil || s.test.Status.StartTime == nil || s.seen.Setting {
		return nil
	}
	s.quietFrom = measuredFrom(s.test)
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.fault.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the faults: %w", err)
	}
	s.observeLosses(all.Items)
	for i := range all.Items {
		if other := &all.Items[i]; other.UID != s.fault.UID && !other.Spec.Setting &&
			other.Status.LoadTest == s.test.Name &&
			other.Status.LoadStartTime.Equal(s.test.Status.StartTime) {
			s.observeOther(other)
		}
	}
	// the wait for steady throughput begins there, too
	s.seen.WarmUntil = s.test.Status.StartTime.Add(s.quietFrom)
	s.quietFrom = max(s.quietFrom, r.partBegan(s))
	return nil
}

// observeOther determines what another fault on the same load means for the baseline.
func (s *scope) observeOther(f *v1alpha1.RedisFault) {
	other, start := &f.Status, s.test.Status.StartTime.Time
	over := settledAt(other)
	waits := other.InjectedAt == nil && claims.TraitsOf(f).External // nothing is broken yet
	if other.StartTime != nil && over == nil && f.DeletionTimestamp == nil && !waits {
		s.underWay = f.Name
	}
	s.others = append(s.others, windowsOf(other, start)...)
	if injected := s.fault.Status.InjectedAt; other.InjectedAt != nil && over != nil &&
		(injected == nil || over.Before(injected)) {
		s.quietFrom = max(s.quietFrom, over.Sub(start))
	}
}

// windowsOf is when a fault explains what a load shows, counted from the load's start: from its
// injection until it has settled; none if it was not injected.
func windowsOf(status *v1alpha1.RedisFaultStatus, start time.Time) []summary.Window {
	if status.InjectedAt == nil {
		return nil
	}
	w := actedOn(status, start)
	w.From -= time.Second
	return []summary.Window{w}
}

// partBegan returns when the part of the load's plan began, from the start, that runs at the
// injection, or now; 0 if the plan has no such parts.
func (r *Reconciler) partBegan(s *scope) time.Duration {
	planned, start := children.Planned(&s.test.Spec), s.test.Status.StartTime.Time
	switch {
	case len(planned.Changes) == 0:
		return 0
	case s.fault.Status.InjectedAt != nil:
		return planned.Since(state.InjectedAfter(&s.fault.Status, start))
	}
	return planned.Since(r.Clock.Now().Sub(start))
}

// settledAt returns when a fault was reverted and its recovery was evaluated, so that another
// baseline can begin; nil before that.
func settledAt(status *v1alpha1.RedisFaultStatus) *metav1.MicroTime {
	if status.SettledTime != nil {
		return status.SettledTime
	}
	return status.CompletionTime
}

// observeTrigger evaluates spec.trigger.
func (r *Reconciler) observeTrigger(s *scope) {
	trigger := &s.fault.Spec.Trigger
	s.seen.SteadyFor, s.seen.SteadyWithin = v1alpha1.DefaultSteadyFor, trigger.Timeout.Duration
	if s.seen.SteadyWithin == 0 {
		s.seen.SteadyWithin = 5 * time.Minute
	}
	if trigger.After != nil {
		s.seen.After = &trigger.After.Duration
		return
	}
	if trigger.SteadyFor != nil {
		s.seen.SteadyFor = trigger.SteadyFor.Duration
	}
	if s.seen.Recorded || s.seen.Load != lifecycle.LoadRunning {
		return
	}
	if s.underWay != "" {
		s.seen.SteadyWhy = fmt.Sprintf("RedisFault %s is active on the same load", s.underWay)
		return
	}
	s.run.Read(func(series *merged.Series) {
		s.seen.Steady, s.seen.SteadyWhy = throughput.Steady(series, s.seen.SteadyFor, s.quietFrom,
			children.Planned(&s.test.Spec))
	})
}

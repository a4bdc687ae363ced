package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record/merged"
)

// ObserveQuiet determines where a baseline can begin: after the warm-up, after every earlier fault
// on the same load has settled, and with the test of a benchmark that runs at the injection. The
// outage of one fault would make the baseline of the next one unsteady.
func (r *Observer) ObserveQuiet(ctx context.Context, s *scope.Fault) error {
	if s.Test == nil || s.Test.Status.StartTime == nil || s.Seen.Setting {
		return nil
	}
	s.QuietFrom = scope.MeasuredFrom(s.Test)
	var all v1alpha1.RedisFaultList
	err := r.Client.List(ctx, &all, client.InNamespace(s.Fault.Namespace),
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the faults: %w", err)
	}
	figures.ObserveLosses(s, all.Items)
	observePartners(s, all.Items)
	if since := besideSince(s); !since.IsZero() { // what they do is a part of the baseline
		s.QuietFrom = max(s.QuietFrom, since.Sub(s.Test.Status.StartTime.Time))
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.UID != s.Fault.UID && !other.Spec.Setting &&
			other.Status.LoadTest == s.Test.Name &&
			other.Status.LoadStartTime.Equal(s.Test.Status.StartTime) {
			observeOther(s, other)
		}
	}
	// the wait for steady throughput begins there, too
	s.Seen.WarmUntil = s.Test.Status.StartTime.Add(s.QuietFrom)
	s.QuietFrom = max(s.QuietFrom, r.partBegan(s))
	return nil
}

// observeOther determines what another fault on the same load means for the baseline.
func observeOther(s *scope.Fault, f *v1alpha1.RedisFault) {
	other, start, traits := &f.Status, s.Test.Status.StartTime.Time, claims.TraitsOf(f)
	if scope.Met(&s.Fault.Status, other) {
		s.Meanwhile = append(s.Meanwhile, f)
	}
	if traits.Apart { // clients notice nothing of it
		return
	}
	over := scope.SettledAt(other)
	waits := other.InjectedAt == nil && traits.External // nothing is broken yet
	if other.StartTime != nil && over == nil && f.DeletionTimestamp == nil && !waits &&
		!slices.Contains(s.Fault.Spec.Beside, f.Name) {
		s.UnderWay = f.Name
	}
	s.Others = append(s.Others, scope.WindowsOf(other, start)...)
	injected := s.Fault.Status.InjectedAt
	if other.InjectedAt != nil && over != nil && (injected == nil || over.Before(injected)) {
		s.QuietFrom = max(s.QuietFrom, over.Sub(start))
	}
}

// partBegan returns when the part of the load's plan began, from the start, that runs at the
// injection, or now; 0 if the plan has no such parts.
func (r *Observer) partBegan(s *scope.Fault) time.Duration {
	planned, start := children.Planned(&s.Test.Spec), s.Test.Status.StartTime.Time
	switch {
	case len(planned.Changes) == 0:
		return 0
	case s.Fault.Status.InjectedAt != nil:
		return planned.Since(state.InjectedAfter(&s.Fault.Status, start))
	}
	return planned.Since(r.Clock.Now().Sub(start))
}

// ObserveTrigger evaluates spec.trigger.
func (r *Observer) ObserveTrigger(s *scope.Fault) {
	trigger := &s.Fault.Spec.Trigger
	s.Seen.SteadyFor, s.Seen.SteadyWithin = v1alpha1.DefaultSteadyFor, trigger.Timeout.Duration
	if s.Seen.SteadyWithin == 0 {
		s.Seen.SteadyWithin = 5 * time.Minute
	}
	if trigger.After != nil {
		s.Seen.After = &trigger.After.Duration
		return
	}
	if trigger.SteadyFor != nil {
		s.Seen.SteadyFor = trigger.SteadyFor.Duration
	}
	if s.Seen.Recorded || s.Seen.Load != lifecycle.LoadRunning {
		return
	}
	if s.UnderWay != "" {
		s.Seen.SteadyWhy = fmt.Sprintf("RedisFault %s is active on the same load", s.UnderWay)
		return
	}
	s.Run.Read(func(series *merged.Series) {
		s.Seen.Steady, s.Seen.SteadyWhy = throughput.Steady(series, s.Seen.SteadyFor, s.QuietFrom,
			children.Planned(&s.Test.Spec))
	})
}

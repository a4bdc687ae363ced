package timeline

import (
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/result"
)

// The sources of the events of a timeline. All other events are from Redis.
var (
	byKubernetes = []string{
		Terminating, Deleted, Created, Scheduled, Restarted, Started, Ready, Exited, OOMKilled, BackOff,
		contract.EventMultiAttach, contract.EventAttached, contract.EventNodeNotReady, contract.EventNodeReady,
	}
	stamped = []string{
		Created, Scheduled, Started, Ready, Exited, OOMKilled, contract.EventNodeNotReady, contract.EventNodeReady,
	}
	byClients = []string{FirstError, durations.Serves, FirstSuccess, Recovered}
	// the fault itself, or unknown
	withoutSource = []string{durations.Unexplained, Reverted, Active, Marked, InjectedBeside}
	noPhase       = []string{Injected, InjectedBeside, Marked, Active, EffectLost}
)

// Phases divides a recovery at the first event of each kind in the timeline.
func Phases(status *v1alpha1.RedisFaultStatus, measured *impact.Impact) []result.Phase {
	if !measured.Recovered || measured.RecoveryTime.Value <= 0 {
		return nil
	}
	t0 := status.InjectedAt.Time
	var milestones []durations.Milestone
	known := map[string]bool{}
	for _, e := range withLoading(status.Timeline) {
		if !known[e.Event] && !slices.Contains(noPhase, e.Event) && !e.At.Time.Before(t0) {
			known[e.Event] = true
			milestones = append(milestones, milestoneOf(&e, e.At.Sub(t0), measured))
		}
	}
	var phases []result.Phase
	for _, p := range durations.Phases(measured.Injection, milestones, measured.RecoveryTime) {
		if p.Name == durations.Unexplained && status.RevertedAt != nil &&
			!t0.Add(p.At).After(status.RevertedAt.Time) {
			p.Name = Active // the fault was active
		}
		phases = append(phases, result.Phase{
			Name:   p.Name,
			Source: string(sourceOf(p.Name)),
			At:     result.Seconds(p.At),
			Took:   result.Bounds(p.Duration),
		})
	}
	return phases
}

// readWithin is by how much earlier than it was read a change of an object of the API server can
// have been.
const readWithin = time.Second

// milestoneOf is the event at an instant from t0, with its uncertainty.
func milestoneOf(
	e *v1alpha1.TimelineEvent, at time.Duration, measured *impact.Impact,
) durations.Milestone {
	m := durations.Milestone{Name: e.Event, At: at}
	switch {
	case e.Event == FirstError:
		m = measured.Injection.Since(e.Event, measured.TimeToImpact)
		m.At = at
	case e.Event == durations.Serves:
		m.Sooner = measured.ProbeOutageEnd.Value - measured.ProbeOutageEnd.AtLeast
	case e.Event == FirstSuccess:
		m.Sooner = measured.OutageEnd.Value - measured.OutageEnd.AtLeast
	case slices.Contains(stamped, e.Event): // in whole seconds, and dated as late as possible
		m.Sooner = e.At.Sub(e.At.Truncate(time.Second))
	case slices.Contains(byKubernetes, e.Event):
		m.Sooner = readWithin
	case sourceOf(e.Event) == v1alpha1.PhaseRedis:
		m.Sooner = fault.SeenWithin
	}
	m.Sooner = min(m.Sooner, at) // not before the injection
	return m
}

func sourceOf(event string) v1alpha1.PhaseSource {
	switch {
	case slices.Contains(byKubernetes, event):
		return v1alpha1.PhaseKubernetes
	case slices.Contains(byClients, event):
		return v1alpha1.PhaseClient
	case slices.Contains(withoutSource, event):
		return ""
	}
	return v1alpha1.PhaseRedis
}

package fault

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault/contract"
)

// The sources of the events of a timeline. All other events are from Redis.
var (
	byKubernetes = []string{
		eventTerminating, eventDeleted, eventCreated, eventScheduled, eventRestarted, eventStarted, eventReady,
		contract.EventMultiAttach, contract.EventAttached,
	}
	stamped       = []string{eventCreated, eventScheduled, eventStarted, eventReady}
	byClients     = []string{eventFirstError, impact.Serves, eventFirstSuccess, eventRecovered}
	withoutSource = []string{impact.Unexplained, eventReverted, eventActive} // the fault itself, or unknown
	noPhase       = []string{eventInjected, eventActive, eventEffectLost}
)

// phasesOf divides a recovery at the first event of each kind in the timeline.
func phasesOf(status *v1alpha1.RedisFaultStatus, measured *impact.Impact) []v1alpha1.Phase {
	if !measured.Recovered || measured.RecoveryTime.Value <= 0 {
		return nil
	}
	t0 := status.InjectedAt.Time
	var milestones []impact.Milestone
	known := map[string]bool{}
	for _, e := range status.Timeline {
		if !known[e.Event] && !slices.Contains(noPhase, e.Event) {
			known[e.Event] = true
			milestones = append(milestones, impact.Milestone{Name: e.Event, At: e.At.Sub(t0), Sooner: sooner(&e)})
		}
	}
	var phases []v1alpha1.Phase
	for _, p := range impact.Phases(milestones, measured.RecoveryTime) {
		if p.Name == impact.Unexplained && status.RevertedAt != nil && !t0.Add(p.At).After(status.RevertedAt.Time) {
			p.Name = eventActive // the fault was active
		}
		phases = append(phases, v1alpha1.Phase{Name: p.Name, Source: sourceOf(p.Name), At: metav1.NewMicroTime(t0.Add(p.At)), Duration: bounded(p.Duration)})
	}
	return phases
}

// sooner is by how much earlier an event can have been: those that Kubernetes stamps, in whole seconds, are dated as late as possible.
func sooner(e *v1alpha1.TimelineEvent) time.Duration {
	if slices.Contains(stamped, e.Event) {
		return e.At.Sub(e.At.Truncate(time.Second))
	}
	return 0
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

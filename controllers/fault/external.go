package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/digest"
)

// broken returns the events that show what broke Redis: those of pods and servers since t0.
func broken(status *v1alpha1.RedisFaultStatus) []v1alpha1.TimelineEvent {
	return slices.DeleteFunc(slices.Clone(status.Timeline), func(e v1alpha1.TimelineEvent) bool {
		return e.Event == eventMarked || sourceOf(e.Event) == v1alpha1.PhaseClient
	})
}

// ends are the events by which a server has ended.
func ends(e *v1alpha1.TimelineEvent) bool {
	return e.Event == eventDeleted || e.Event == eventRestarted
}

// confirmExternal judges whether anything shows that something broke Redis.
func (s *scope) confirmExternal() {
	status := &s.fault.Status
	var evidence []string
	for _, e := range broken(status) {
		evidence = append(evidence, strings.TrimSpace(e.Event+" "+e.Object))
	}
	if status.MarkedBy == v1alpha1.MarkedByLoad || s.measured != nil && s.measured.TimeToImpact != nil {
		evidence = append(evidence, "the load has errors or a gap")
	}
	status.Effect, status.EffectEvidence = v1alpha1.EffectNotObserved, "neither the load nor pods nor servers show anything"
	if len(evidence) > 0 {
		status.Effect, status.EffectEvidence = v1alpha1.EffectConfirmed, digest.Truncate(strings.Join(evidence, ", "), 1024)
	}
}

// externalCompletedAt returns when what broke Redis was complete, as far as it shows: a pod that terminates may serve for a while. It returns the zero time before
// anything shows.
func externalCompletedAt(status *v1alpha1.RedisFaultStatus) time.Time {
	var last time.Time
	terminating := map[string]bool{}
	events := broken(status)
	for i := range events {
		switch e := &events[i]; {
		case e.Event == eventTerminating:
			terminating[e.Object] = true
		case ends(e):
			delete(terminating, e.Object)
			last = e.At.Time
		}
	}
	shows := len(events) > 0 || status.MarkedBy == v1alpha1.MarkedByLoad || status.Impact != nil && status.Impact.TimeToImpact != nil
	switch {
	case len(terminating) > 0 || !shows:
		return time.Time{}
	case last.IsZero():
		return status.InjectedAt.Time
	}
	return last
}

// hitPods are the targets that were terminated, deleted or restarted, for display.
func hitPods(status *v1alpha1.RedisFaultStatus) string {
	var hit []string
	events := broken(status)
	for i := range events {
		e := &events[i]
		if isTarget := slices.ContainsFunc(status.Targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == e.Object }); isTarget && (ends(e) || e.Event == eventTerminating) && !slices.Contains(hit, e.Object) {
			hit = append(hit, e.Object)
		}
	}
	switch len(hit) {
	case 0:
		return ""
	case 1:
		return hit[0]
	}
	return fmt.Sprintf("%s and %d more", hit[0], len(hit)-1)
}

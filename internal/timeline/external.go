package timeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Broken returns the events that show what broke Redis: those of pods and servers since t0.
func Broken(status *v1alpha1.RedisFaultStatus) []v1alpha1.TimelineEvent {
	return slices.DeleteFunc(slices.Clone(status.Timeline), func(e v1alpha1.TimelineEvent) bool {
		return e.Event == Marked || sourceOf(e.Event) == v1alpha1.PhaseClient
	})
}

// ends are the events by which a server has ended.
func ends(e *v1alpha1.TimelineEvent) bool {
	return e.Event == Deleted || e.Event == Restarted
}

// externalCompletedAt returns when what broke Redis was complete, as far as it shows: a pod that
// terminates may serve for a while. It returns the zero time before anything shows.
func externalCompletedAt(status *v1alpha1.RedisFaultStatus) time.Time {
	var last time.Time
	terminating := map[string]bool{}
	events := Broken(status)
	for i := range events {
		switch e := &events[i]; {
		case e.Event == Terminating:
			terminating[e.Object] = true
		case ends(e):
			delete(terminating, e.Object)
			last = e.At.Time
		}
	}
	shows := len(events) > 0 || status.MarkedBy == v1alpha1.MarkedByLoad ||
		status.Impact != nil && status.Impact.TimeToImpact != nil
	switch {
	case len(terminating) > 0 || !shows:
		return time.Time{}
	case last.IsZero():
		return status.InjectedAt.Time
	}
	return last
}

// HitPods are the targets that were terminated, deleted or restarted, for display.
func HitPods(status *v1alpha1.RedisFaultStatus) string {
	var hit []string
	events := Broken(status)
	for i := range events {
		e := &events[i]
		if isTarget := slices.ContainsFunc(status.Targets, func(t v1alpha1.FaultTarget) bool {
			return t.Pod == e.Object
		}); isTarget && (ends(e) || e.Event == Terminating) && !slices.Contains(hit, e.Object) {
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

package timeline

import (
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
)

// withLoading is the timeline in which the time of a server that answers LOADING is its own: a
// readiness probe that passes meanwhile tells nothing, and the data was there before a client's
// success that came between two polls of the server.
func withLoading(timeline []v1alpha1.TimelineEvent) []v1alpha1.TimelineEvent {
	var first, rest []v1alpha1.TimelineEvent // of one instant, the data is there first
	for _, e := range timeline {
		began := loadingSince(timeline, e.Object, e.At.Time)
		switch {
		case began.IsZero():
		case e.Event == Ready:
			continue
		case e.Event == contract.EventDatasetLoaded:
			if served := firstSuccess(timeline, began); !promotedBefore(timeline, served) &&
				served.Before(e.At.Time) && e.At.Sub(served) <= fault.SeenWithin {
				e.At.Time = served
				first = append(first, e)
				continue
			}
		}
		rest = append(rest, e)
	}
	all := slices.Concat(first, rest)
	slices.SortStableFunc(all, func(a, b v1alpha1.TimelineEvent) int {
		return a.At.Compare(b.At.Time)
	})
	return all
}

// promotedBefore reports whether another server had been promoted at an instant, which may be the
// one that clients then reach.
func promotedBefore(timeline []v1alpha1.TimelineEvent, at time.Time) bool {
	return slices.ContainsFunc(timeline, func(e v1alpha1.TimelineEvent) bool {
		return e.Event == contract.EventPromoted && !e.At.After(at)
	})
}

// loadingSince is when a server was first seen to load, if at an instant it is not yet known to
// have its data; zero = it does not load.
func loadingSince(timeline []v1alpha1.TimelineEvent, pod string, at time.Time) time.Time {
	when := func(event string) time.Time {
		i := slices.IndexFunc(timeline, func(e v1alpha1.TimelineEvent) bool {
			return e.Event == event &&
				e.Object == pod
		})
		if i < 0 {
			return time.Time{}
		}
		return timeline[i].At.Time
	}
	began, loaded := when(contract.EventLoading), when(contract.EventDatasetLoaded)
	if began.IsZero() || at.Before(began) || !loaded.IsZero() && at.After(loaded) {
		return time.Time{}
	}
	return began
}

// firstSuccess is the first success of a client after an instant; that of the probe is one. A far
// future = there was none.
func firstSuccess(timeline []v1alpha1.TimelineEvent, after time.Time) time.Time {
	for _, e := range timeline { // in order
		if (e.Event == durations.Serves || e.Event == FirstSuccess) && e.At.After(after) {
			return e.At.Time
		}
	}
	return after.Add(1 << 62)
}

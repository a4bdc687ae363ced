package run

import (
	"slices"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// timelineOf is the events of a fault; own tells that time counts from its injection, and not
// from the start of the load.
func timelineOf(f *subject.Fault, own bool) (list []report.Event) {
	for _, e := range f.Status.Timeline {
		event := report.Event{
			At:      e.At.UTC(),
			Offset:  result.Seconds(e.Offset.Duration),
			Event:   e.Event,
			Object:  e.Object,
			Message: e.Message,
			Owner:   events.OwnerOf(e.Event, ""),
		}
		if event.Message == "" {
			event.Message = events.Meaning(e.Event)
		}
		if !own {
			event.Offset += result.Seconds(f.At)
		}
		list = append(list, event)
	}
	w := f.Drawn.Outage
	for i := range list {
		at := f.At + f.Status.Timeline[i].Offset.Duration
		list[i].Silent = w.To > w.From && at >= w.From && at < w.To
	}
	return list
}

// timeline is the events of all faults, from the start of the load; of a single one from its
// injection.
func timeline(s *subject.Run) (list []report.Event) {
	for _, f := range s.Faults {
		list = append(list, timelineOf(f, len(s.Faults) == 1)...)
	}
	slices.SortStableFunc(list, func(a, b report.Event) int { return a.At.Compare(b.At) })
	return list
}

// quiet reports whether a fault had an outage that is drawn.
func quiet(s *subject.Run) bool {
	return slices.ContainsFunc(s.Faults, func(f *subject.Fault) bool {
		return f.Drawn.Outage.To > f.Drawn.Outage.From
	})
}

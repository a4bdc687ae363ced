package measured

import (
	"fmt"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// Guarantees are what applications count on that use Redis as the workload does, with how often that
// was false; nil = the workload does not find that out.
func Guarantees(g *result.Guarantees) *report.Section {
	if g == nil || g.Lock == nil {
		return nil
	}
	sec := locks(g.Lock, g.Untold == "")
	if g.Untold != "" {
		sec.Note = "These are lower bounds: " + report.Sentence(g.Untold)
	}
	return sec
}

// locks is what was found of locks, of the whole load or of a part of it.
func locks(l *result.Lock, whole bool) *report.Section {
	sec := &report.Section{ID: "locks", Title: "Locks"}
	switch {
	case l.Overlaps == 0 && !whole:
		sec.Finding = report.Text("Whether two users ever held the same lock is not known.")
	case l.Taken == 0:
		sec.Finding = report.Text("No user could take a lock.")
	case l.Overlaps == 0:
		sec.Finding = report.Text("").Strong("Never did two users hold the same lock").
			Add(fmt.Sprintf(": %s times was one taken.", report.Count(l.Taken)))
	default:
		sec.Finding = report.Text("").
			Damage(fmt.Sprintf("%s times did two users hold the same lock", report.Count(l.Overlaps))).
			Add(fmt.Sprintf(", for up to %s: each had been told that it has it, and had not given it up.",
				report.Seconds(l.LongestOverlap)))
	}
	sec.Facts = []report.Fact{{Name: "Taken", Value: report.Count(l.Taken)}}
	if l.Overlaps > 0 {
		sec.Facts = append(sec.Facts, report.Fact{
			Name:   "Held by two users",
			Value:  report.Count(l.Overlaps),
			Detail: report.Seconds(l.FirstOverlap) + " to " + report.Seconds(l.LastOverlap) + " after the start",
		})
	}
	sec.Facts = append(sec.Facts,
		report.Fact{
			Name:   "Lost",
			Value:  report.Count(l.Lost),
			Detail: "gone before their holders gave them up and before their TTL had passed",
		},
		report.Fact{
			Name:   "Expired",
			Value:  report.Count(l.Expired),
			Detail: "their holders could not renew them in time",
		},
		report.Fact{Name: "Longest time without a holder", Value: report.Seconds(l.LongestUnheld)})
	if l.Unreplicated > 0 {
		sec.Facts = append(sec.Facts, report.Fact{
			Name:   "Given up at once",
			Value:  report.Count(l.Unreplicated),
			Detail: "too few replicas had them in time",
		})
	}
	if n := l.FencesBackwards; n != nil {
		sec.Facts = append(sec.Facts, report.Fact{
			Name:   "Fencing tokens that went backwards",
			Value:  report.Count(*n),
			Detail: "a resource would have refused the new holder, or accepted an old one",
		})
	}
	return sec
}

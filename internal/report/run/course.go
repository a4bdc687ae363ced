package run

import (
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/course"
	"github.com/redquake/redquake/internal/result"
)

// Course is the course of a run as parts of a report: its rows, the faults on it, and the times
// without a success.
func Course(in Input, c *result.Course) *report.Document {
	in.complete()
	s := newSubject(in)
	d := s.document(report.LoadTest)
	d.Sections = []report.Section{
		{
			ID:     "course",
			Title:  "Every " + report.Seconds(c.Every),
			Tables: []report.Table{course.Table(c, "Since the start", 0)},
		},
	}
	if c.Operation != "" {
		d.Sections[0].Title += ", of " + c.Operation
	}
	s.faultsSection(d)
	s.add(d, course.Gaps(c, s.known))
	d.Notes = c.Notes
	return d
}

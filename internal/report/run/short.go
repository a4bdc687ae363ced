package run

import (
	"slices"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/course"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// Notes that explain the form of a report: a short one needs them as little as those who read many.
const (
	noteOnSigns = "± says how far this measurement may be off (− only less, + only more). It does " +
		"not say how much faults differ: one fault is one sample. " +
		"Run it several times and look at the worst."
	noteOnNoRecord = "Without the record of the load there are no curves."
)

// Short is what is written of a report at the end of a command, for people who wait for it:
// verdict, figures, the objectives that are not met, and doubts; of a load its operations, errors
// and faults, the trials of a search, what was lost, and what limited it; of a fault where the time
// went.
func Short(d *report.Document) *report.Document {
	shown := []string{"search", "faults", "err", "ops", "ledger", "locks", "srv"}
	if d.Kind == report.Fault {
		shown = []string{"zoom", "active"}
	}
	short := *d
	short.Specification, short.Sections = "", nil
	short.Objectives = slices.DeleteFunc(slices.Clone(d.Objectives), func(o report.Objective) bool {
		return o.Judged == report.Met
	})
	for _, s := range d.Sections {
		// whose is short
		if !slices.Contains(shown, s.ID) && d.Kind != report.Experiment && d.Kind != report.Schedule {
			continue
		}
		if s.ID == "srv" || s.ID == "ledger" { // a sentence says it
			s.Facts, s.Tables = nil, nil
		}
		short.Sections = append(short.Sections, s)
	}
	short.Notes = slices.DeleteFunc(slices.Clone(d.Notes), func(note string) bool {
		return note == noteOnSigns || note == noteOnNoRecord
	})
	return &short
}

// Course is the course of a run as parts of a report: its rows, the faults on it, and the times
// without a success.
func Course(in subject.Input, c *result.Course) *report.Document {
	s := subject.New(in)
	d := document(s, report.LoadTest)
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
	faultsSection(s, d)
	d.Add(course.Gaps(c, s.Known))
	d.Notes = c.Notes
	return d
}

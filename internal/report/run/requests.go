package run

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// outcomes say of each class of errors whether the request can have been applied, and what it was.
var outcomes = map[string][2]string{
	curve.Dropped: {"never sent", "the timeout had passed since its intended arrival"},
	"timeout":     {"unknown", "sent, and no reply in time: may have been carried out"},
	"refused":     {"failed", "the connection could not be made"},
	"reset":       {"unknown", "the connection broke under the request: may have been carried out"},
	"readonly":    {"failed", "the server was a replica"},
	"moved":       {"failed", "the slot had moved, and the redirection could not be followed"},
	"clusterdown": {"failed", "the cluster refused commands"},
	"loading":     {"failed", "the server was loading its data"},
	"masterdown":  {"failed", "the replica had lost its primary"},
	"auth":        {"failed", "the user may not do this"},
	"oom":         {"failed", "the server’s memory was full"},
	"busy":        {"failed", "the server ran a script"},
	"misconf":     {"failed", "the server refused writes, as it could not save"},
	"protocol":    {"unknown", "what came back was no reply"},
	"other":       {"failed", "another error reply"},
	"noreplicas":  {"failed", "too few replicas were in sync"},
}

// errorClass is one class of errors until recovery, and of the whole run.
type errorClass struct {
	name         string
	until, whole int64
	// from the start of the load, to the step of the record; negative = not known
	first, last      time.Duration
	wholeUnavailable bool
}

// classesUntil are the classes of errors from the injection to recovery, the most frequent first.
func classesUntil(f *subject.Fault) (list []errorClass) {
	rest := int64(f.Result.Errors)
	for _, e := range f.Result.ByClass {
		list = append(list, errorClass{name: e.Class, until: int64(e.Count)})
		rest -= int64(e.Count)
	}
	if rest > 0 {
		list = append(list, errorClass{name: curve.Dropped, until: rest})
	}
	for i := range list {
		c := &list[i]
		c.first, c.last = firstAndLast(f, c.name)
		c.whole, c.wholeUnavailable = inWholeRun(f.Run, c.name)
	}
	for i := range list { // few: dropped may belong before others
		for k := i; k > 0 && list[k].until > list[k-1].until; k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
	return list
}

// inWholeRun is how many errors of a class the whole run had.
func inWholeRun(s *subject.Run, class string) (n int64, unavailable bool) {
	if class == curve.Dropped {
		return int64(s.Load.Total.Dropped), s.Load.Total.Requests == 0
	}
	for _, e := range s.Load.Errors {
		if e.Class == class {
			return int64(e.Count), false
		}
	}
	return 0, s.Load.Total.Requests == 0
}

// firstAndLast are when the first and the last error of a class occurred from the injection to
// recovery, to the step of the record.
func firstAndLast(f *subject.Fault, class string) (first, last time.Duration) {
	first, last = -1, -1
	c := f.Run.Columns
	if c == nil {
		return first, last
	}
	for _, one := range c.Errors {
		if one.Name != class {
			continue
		}
		for i, n := range one.Counts {
			from := time.Duration(i) * c.Step
			if n == 0 || from+c.Step <= f.At || f.Drawn.Recovered > 0 && from > f.Drawn.Recovered {
				continue
			}
			if first < 0 {
				first = from
			}
			last = from
		}
	}
	return first, last
}

// requestsSection says what became of the requests of a fault: why there are fewer errors than lost
// requests, and what each class means.
func requestsSection(f *subject.Fault) *report.Section {
	lost, errors := int64(f.Result.LostRequests), int64(f.Result.Errors)
	if f.Status.InjectedAt == nil || lost <= 0 && errors == 0 {
		return nil
	}
	s := &report.Section{ID: "err", Title: "What became of the requests"}
	late := max(0, lost-errors)
	switch {
	case f.Run.OpenLoop && lost > 0 && late > 0:
		s.Finding = report.Text(report.Count(lost) +
			" requests were not answered in their time. ").Strong(
			fmt.Sprintf("%s of them ended in an error; the other %s were answered late.",
				report.Count(errors), report.Count(late))).
			Add(" So the number of errors says how often clients tried, not how long the outage was.")
	case lost > 0:
		s.Finding = report.Text(fmt.Sprintf("%s requests fewer succeeded than at the baseline; ",
			report.Count(lost))).Strong(report.Count(errors) + " ended in an error.").
			Add(" In a closed loop users wait, so that few requests fail however long the outage is.")
		if f.Run.OpenLoop {
			s.Finding = report.Text(fmt.Sprintf("%s requests were not answered in their time; ",
				report.Count(lost))).Strong(report.Count(errors) + " ended in an error.")
		}
	default:
		s.Finding = report.Text(report.Count(errors) +
			" requests ended in an error, though the throughput did not fall.")
	}
	classes := classesUntil(f)
	if f.Run.OpenLoop && late > 0 {
		s.Drawing = splitOf(late, classes)
	}
	s.Tables = []report.Table{classTable(f, classes)}
	return s
}

func splitOf(late int64, classes []errorClass) (drawing curve.Markup) {
	parts := []curve.Part{{Name: "answered late", Count: late}}
	for i, c := range classes {
		part := curve.Part{
			Name:   c.name,
			Count:  c.until,
			Class:  min(i+1, 3),
			Detail: outcomes[c.name][1],
		}
		parts = append(parts, part)
	}
	return curve.Split(parts)
}

func classTable(f *subject.Fault, classes []errorClass) report.Table {
	t := report.Table{
		Columns: []report.Column{
			{Title: "Class"},
			{Title: "Outcome"},
			{Title: "Until recovery", Number: true},
			{Title: "Whole run", Number: true},
			{Title: "First", Number: true, Wide: true},
			{Title: "Last", Number: true, Wide: true},
			{Title: "What it was", Soft: true, Wide: true},
		},
	}
	var until, whole int64
	for i, c := range classes {
		row := []report.Cell{
			{Text: c.name, Class: min(i+1, 3)},
			{Text: outcomes[c.name][0]},
			report.CountCell(c.until),
			report.CountCell(c.whole),
			{},
			{},
			{Text: outcomes[c.name][1]},
		}
		if c.wholeUnavailable {
			row[3] = report.Cell{}
		}
		if c.first >= 0 {
			row[4], row[5] = report.SinceCell(c.first-f.At), report.SinceCell(c.last-f.At)
			if c.first < f.At { // in the step of the injection
				row[4] = report.Cell{Text: "at once"}
			}
		}
		t.Rows = append(t.Rows, report.Row{Cells: row})
		until, whole = until+c.until, whole+c.whole
	}
	if len(classes) > 1 {
		t.Rows = append(t.Rows, report.Row{
			Sum: true,
			Cells: []report.Cell{
				{Text: "all"},
				{},
				report.CountCell(until),
				report.CountCell(whole),
				{},
				{},
				{},
			},
		})
	}
	return t
}

// errorsSection is the errors of a load by class, and what each class means.
func errorsSection(s *subject.Run) *report.Section {
	if len(s.Faults) == 1 {
		return requestsSection(s.Faults[0])
	}
	total := s.Load.Total.Errors()
	if total == 0 {
		return nil
	}
	sec := &report.Section{
		ID:    "err",
		Title: "Errors",
		Finding: report.Text(fmt.Sprintf("%s of %s requests ended in an error.", report.Count(total),
			report.Count(s.Load.Total.Requests))),
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Class"},
			{Title: "Outcome"},
			{Title: "Requests", Number: true},
			{Title: "What it was", Soft: true, Wide: true},
		},
	}
	list := s.Load.Errors
	if n := s.Load.Total.Dropped; n > 0 {
		list = append(list[:len(list):len(list)], result.ErrorCount{Class: curve.Dropped, Count: n})
	}
	for i, e := range list {
		what := outcomes[e.Class][1]
		if e.Sample != "" {
			what += ": " + e.Sample
		}
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: e.Class, Class: min(i+1, 3)},
				{Text: outcomes[e.Class][0]},
				report.CountCell(int64(e.Count)),
				{Text: what},
			},
		})
	}
	sec.Tables = []report.Table{t}
	return sec
}

// operationsSection is the effect of a fault on each operation.
func operationsSection(f *subject.Fault) *report.Section {
	if len(f.Result.Operations) == 0 {
		return nil
	}
	t := report.Table{
		Caption: "Until recovery.",
		Columns: []report.Column{
			{Title: "Operation"},
			{Title: "Outage", Number: true},
			{Title: "Known to", Number: true, Soft: true},
			{Title: "Dip", Number: true},
			{Title: "Errors", Number: true},
			{Title: "First error", Number: true, Wide: true},
			{Title: "Last error", Number: true, Wide: true},
		},
	}
	row := func(name string, o *result.BoundedSeconds, dip *float64, i *result.Failures) {
		r := report.Row{
			Cells: []report.Cell{{Text: name}, {}, {}, {}, report.CountCell(int64(i.Errors)), {}, {}},
		}
		if o != nil {
			r.Cells[1] = report.DurationCell(time.Duration(o.Value))
			r.Cells[2].Text = exactness(o.Bounded())
		}
		if dip != nil {
			r.Cells[3] = report.Cell{
				Text:  report.Share(*dip),
				Value: dip,
				Unit:  result.UnitShare,
			}
		}
		for k, at := range []*result.Seconds{i.First, i.Last} {
			if at != nil {
				r.Cells[5+k] = report.SinceCell(time.Duration(*at))
			}
		}
		t.Rows = append(t.Rows, r)
	}
	i := f.Result
	//nolint:forbidigo // each is shown by its own name
	if i.Reads != nil && i.Writes != nil && i.Outages != nil && i.Dips != nil {
		row("reads", i.Outages.Reads, i.Dips.Reads, i.Reads)     //nolint:forbidigo // as such
		row("writes", i.Outages.Writes, i.Dips.Writes, i.Writes) //nolint:forbidigo // as such
		for k := range t.Rows {
			t.Rows[k].Strong = true
		}
	}
	for k := range f.Result.Operations {
		o := &f.Result.Operations[k]
		row(o.Name, &o.Outage, o.Dip, &o.Failures)
	}
	return &report.Section{
		ID:      "ops",
		Title:   "Operations",
		Finding: operationsFinding(f),
		Tables:  []report.Table{t},
	}
}

func operationsFinding(f *subject.Fault) report.Prose {
	worst, most := "", result.Seconds(0)
	for _, o := range f.Result.Operations {
		if o.Outage.Value > most {
			worst, most = o.Name, o.Outage.Value
		}
	}
	if worst == "" {
		return report.Text("No operation was without a success.")
	}
	return report.Text("").Strong(worst + " had the longest outage, " + report.Seconds(most)).Add(".")
}

package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/course"
	"github.com/redquake/redquake/internal/report/figures"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// faultsSection lists the faults of a load.
func faultsSection(s *subject.Run, d *report.Document) {
	if len(s.Faults) == 0 {
		return
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Fault"},
			{Title: "Type"},
			{Title: "At", Number: true, Wide: true},
			{Title: "Outage", Number: true},
			{Title: "Dip", Number: true, Wide: true},
			{Title: "Recovery", Number: true},
			{Title: "Lost writes", Number: true, Wide: true},
			{Title: "Verdict"},
		},
	}
	worst := s.Faults[0]
	for _, f := range s.Faults {
		cells := []report.Cell{{Text: f.Name}, {Text: string(f.Spec.Action.Type)}, report.SinceCell(f.At)}
		named := map[string]report.Figure{}
		for _, one := range figures.OfFault(f, f.Name) {
			named[one.Name] = one
		}
		for _, name := range []string{"outage", "dip", "recoveryTime", "lostWrites"} {
			one := named[name]
			cells = append(cells, report.Cell{
				Text:  one.String(),
				Value: one.Value,
				Unit:  one.Unit,
			})
		}
		judged := map[v1alpha1.Verdict]report.Judged{
			v1alpha1.VerdictPass:         report.Met,
			v1alpha1.VerdictFail:         report.Missed,
			v1alpha1.VerdictInconclusive: report.NotJudged,
		}[f.Status.Verdict]
		t.Rows = append(t.Rows, report.Row{
			Cells: append(cells, report.Cell{Text: string(f.Status.Verdict), Judged: judged}),
		})
		if f.Result.Outage().Value > worst.Result.Outage().Value {
			worst = f
		}
	}
	sec := report.Section{
		ID:      "faults",
		Title:   "Faults",
		Tables:  []report.Table{t},
		Finding: report.Text("Each has a report of its own."),
	}
	length := worst.Outage()
	if length != "" && len(s.Faults) > 1 {
		sec.Finding = report.Text("").Strong(worst.Name + " had the longest outage, " + length).
			Add(". Each has a report of its own.")
	}
	if len(s.Faults) > faultsShown {
		sec.Note = fmt.Sprintf("The first %d are drawn below.", faultsShown)
	}
	d.Sections = append(d.Sections, sec)
}

// activeSection is the load while a fault that lasts was there.
func activeSection(f *subject.Fault) *report.Section {
	w := f.Result.WhileActive
	if w == nil {
		return nil
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Figure"},
			{Title: "While active", Number: true},
			{Title: "Change", Number: true},
		},
	}
	add := func(name, text string, change *float64, bounds *result.ChangeBounds) {
		row := report.Row{Cells: []report.Cell{{Text: name}, {Text: text}, {}}}
		if change != nil {
			row.Cells[2] = report.Cell{
				Text:  report.Change(*change),
				Value: change,
				Unit:  result.UnitShare,
			}
		}
		if bounds != nil {
			row.Cells[2].Text = bounds.Text(report.Change)
		}
		t.Rows = append(t.Rows, row)
	}
	p50, p99 := "–", "–"
	if q := w.Latency; q != nil {
		p50, p99 = report.Seconds(q.P50), report.Seconds(q.P99)
	}
	add("throughput", report.Rate(ptr.Deref(w.Throughput, 0)), w.ThroughputChange, nil)
	add("p50", p50, w.LatencyP50Change, w.LatencyP50ChangeBounds)
	add("p99", p99, w.LatencyP99Change, w.LatencyP99ChangeBounds)
	add("errors", report.Share(ptr.Deref(w.ErrorRate, 0)), w.ErrorRateChange, nil)
	finding := report.Text("Over the " + report.Seconds(w.Length) + " in which the fault was complete")
	if x := w.ThroughputChange; x != nil {
		finding = finding.Add(" the throughput changed by ").Strong(report.Change(*x))
	}
	return &report.Section{
		ID:      "active",
		Title:   "While the fault was there",
		Finding: finding.Add("."),
		Tables:  []report.Table{t},
	}
}

// more adds what is closed until it is opened: doubts, the curves as text, the specification, and
// how to repeat the run.
func more(s *subject.Run, d *report.Document, f *subject.Fault) {
	add(s, d, doubtsSection(s, d, f), secondsSection(s, f))
	objects := specification(s, f)
	if len(objects) > 0 {
		d.Specification = strings.Join(objects, "---\n")
		add(s, d, &report.Section{
			ID:      "spec",
			Title:   "Specification",
			Finding: report.Text("as the API server has it, defaults included"),
			Texts:   []string{d.Specification},
			Folded:  true,
			Derived: true,
		})
	}
	add(s, d, repeatSection(s, d, f))
	d.Notes = append(append(d.Notes, s.Load.Warnings...), s.Load.Notes...)
	if f != nil {
		d.Notes = append(d.Notes, f.Status.Warnings...)
		for i := range f.Status.Targets {
			if t := &f.Status.Targets[i]; t.RevertAbandoned {
				d.Notes = append(d.Notes,
					fmt.Sprintf("%s was not reverted; by hand: %s", t.Pod, t.ManualRevertCommand))
			}
		}
	}
	if f != nil || len(s.Faults) > 0 {
		d.Notes = append(d.Notes, noteOnSigns)
	}
}

// doubtsSection lists the reasons for doubt: those that were found, and of a single fault those
// that were looked for, with what was found and its limit.
func doubtsSection(s *subject.Run, d *report.Document, f *subject.Fault) *report.Section {
	sec := &report.Section{
		ID:      "doubts",
		Title:   "Doubts",
		Folded:  true,
		Derived: true,
		Open:    len(d.Doubts) > 0,
		Finding: report.Text("no reason not to trust the figures was found"),
		Note:    "What these figures cannot say: your client library may wait longer than this client, which tries again after 1 to 50 ms.",
	}
	if n := len(d.Doubts); n > 0 {
		sec.Finding = report.Text(fmt.Sprintf("%d reason%s not to trust the figures", n,
			report.Plural(n)))
	} else if d.Verdict == "" {
		sec.Finding = report.Text("they are looked for at the end")
	}
	if f == nil && len(s.Faults) == 1 {
		f = s.Faults[0]
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Doubt"},
			{Title: "Of"},
			{Title: "Looked at, or why", Soft: true},
			{Title: "Found", Number: true},
			{Title: "Limit", Number: true, Soft: true},
			{Title: "A doubt?"},
		},
	}
	for _, one := range d.Doubts {
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: one.Reason},
				{Text: one.Of},
				{Text: one.Message},
				{},
				{},
				{Text: "yes", Judged: report.NotJudged},
			},
		})
	}
	for _, c := range passedChecks(s, f, d) {
		unit := map[impact.CheckUnit]result.Unit{
			impact.CheckSeconds: result.UnitSeconds,
			impact.CheckCount:   result.UnitCount,
			impact.CheckShare:   result.UnitShare,
			impact.CheckRate:    result.UnitPerSecond,
		}[c.Unit]
		limit := "at most " + report.InUnit(unit, c.Limit)
		if c.Least && c.Limit == 0 {
			limit = "above 0"
		} else if c.Least {
			limit = "at least " + report.InUnit(unit, c.Limit)
		}
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: c.Reason},
				{},
				{Text: c.What},
				{Text: report.InUnit(unit, c.Found), Value: new(c.Found), Unit: unit},
				{Text: limit},
				{Text: "no", Judged: report.Met},
			},
		})
	}
	if len(t.Rows) > 0 {
		sec.Tables = []report.Table{t.WithoutEmptyColumns()}
	}
	return sec
}

// passedChecks are those that were no reason for doubt, by the record.
func passedChecks(s *subject.Run, f *subject.Fault, d *report.Document) (list []impact.Check) {
	if f == nil || s.In.Series == nil || s.Test == nil || f.Status.SettledTime == nil {
		return nil
	}
	at := impact.Fault{At: f.At, Deadline: f.Spec.RecoveryDeadline.Duration}
	for _, c := range impact.Checks(s.In.Series, at, impact.Options{
		MeasuredFrom: s.From,
		Planned:      children.Planned(&s.Test.Spec),
	}) {
		if c.Passed() &&
			!slices.ContainsFunc(d.Doubts, func(o report.Doubt) bool { return o.Reason == c.Reason }) {
			list = append(list, c)
		}
	}
	return list
}

// rowsShown is how many rows the curves as text have at most.
const rowsShown = 120

// secondsSection is the curves as a table: second by second, or longer rows if there were more than
// rowsShown.
func secondsSection(s *subject.Run, f *subject.Fault) *report.Section {
	if s.In.Series == nil || s.In.Series.End() == 0 {
		return nil
	}
	every := time.Second
	for _, step := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second,
		10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
		10 * time.Minute, 30 * time.Minute, time.Hour,
	} {
		if every = step; s.In.Series.End() <= rowsShown*step {
			break
		}
	}
	for s.In.Series.End() > rowsShown*every {
		every *= 2
	}
	rows, err := result.NewCourse(s.In.Series, every, "", nil)
	if err != nil {
		return nil // the operation is always there
	}
	zero, head := time.Duration(0), "Since the start"
	if f == nil && len(s.Faults) == 1 {
		f = s.Faults[0]
	}
	if f != nil && f.Status.InjectedAt != nil {
		zero, head = f.At, "Since the fault"
	}
	t := course.Table(rows, head, zero)
	title, text := "Second by second", "the curves as a table"
	if every > time.Second {
		title = "Every " + report.Duration(every)
		text = "the curves as a table; redquake results has finer rows"
	}
	return &report.Section{
		ID:      "seconds",
		Title:   title,
		Finding: report.Text(text),
		Tables:  []report.Table{t},
		Folded:  true,
		Unfit:   true,
		Derived: true,
	}
}

// specification is the objects as YAML, without what only the API server needs.
func specification(s *subject.Run, f *subject.Fault) (list []string) {
	add := func(kind string, meta metav1.ObjectMeta, spec any) {
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(),
			"kind":       kind,
			"metadata":   map[string]string{"name": meta.Name, "namespace": meta.Namespace},
			"spec":       spec,
		})
		if err == nil { // a decoded object can be encoded
			list = append(list, string(text))
		}
	}
	if s.Test != nil {
		add("RedisLoadTest", s.Test.ObjectMeta, &s.Test.Spec)
	}
	for _, one := range s.Settings {
		add("RedisFault", one.ObjectMeta, &one.Spec)
	}
	faults := s.Faults
	if f != nil {
		faults = []*subject.Fault{f}
	}
	for _, one := range faults {
		if !one.Lone {
			add("RedisFault", one.ObjectMeta, &one.Spec)
		}
	}
	return list
}

func repeatSection(s *subject.Run, d *report.Document, f *subject.Fault) *report.Section {
	sec := &report.Section{
		ID:      "repeat",
		Title:   "Repeat it",
		Finding: report.Text("versions and commands"),
		Folded:  true,
		Derived: true,
	}
	sec.Facts = []report.Fact{{Name: "Redquake", Value: d.Redquake}}
	if c := s.Columns; c != nil {
		sec.Facts = append(sec.Facts, report.Fact{
			Name:  "Record",
			Value: fmt.Sprintf("%s × %s", report.Count(c.Len()), report.Duration(c.Step)),
		})
	}
	if t := s.Load.Target; t.Version != "" {
		sec.Facts = append(sec.Facts, report.Fact{
			Name:  "Server",
			Value: strings.TrimSpace(t.Server + " " + t.Version),
		})
	}
	if s.Test == nil {
		return sec
	}
	command := fmt.Sprintf("redquake report %s -n %s -o html", s.Test.Name, s.Test.Namespace)
	if f != nil {
		command += " --fault " + f.Name
	}
	sec.Texts = []string{
		"# the specification above, in a file, under new names\nkubectl apply -f run.yaml\nkubectl -n " +
			s.Test.Namespace + " wait --for=condition=Complete redisloadtest/" + s.Test.Name +
			" --timeout=10m\n" + command + " > report.html\n",
	}
	return sec
}

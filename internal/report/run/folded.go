package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/course"
	"github.com/redquake/redquake/internal/report/specification"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// more adds what is closed until it is opened: doubts, the curves as text, the specification, and
// how to repeat the run.
func more(s *subject.Run, d *report.Document, f *subject.Fault) {
	d.Add(doubtsSection(s, d, f), secondsSection(s, f))
	d.Specification = strings.Join(objects(s, f), "---\n")
	d.Add(specification.Section(d), repeatSection(s, d, f))
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

// objects are those of a report as YAML.
func objects(s *subject.Run, f *subject.Fault) (list []string) {
	if s.Test != nil {
		list = append(list, specification.Of("RedisLoadTest", &s.Test.ObjectMeta, &s.Test.Spec))
	}
	for _, one := range s.Settings {
		list = append(list, specification.Of("RedisFault", &one.ObjectMeta, &one.Spec))
	}
	faults := s.Faults
	if f != nil {
		faults = []*subject.Fault{f}
	}
	for _, one := range faults {
		if !one.Lone {
			list = append(list, specification.Of("RedisFault", &one.ObjectMeta, &one.Spec))
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

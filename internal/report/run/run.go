// Package run makes the report of a load test and of a fault: from their objects, the record of the
// load, or the result of a load from the command line.
package run

import (
	"fmt"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/report/figures"
	"github.com/redquake/redquake/internal/report/judgement"
	"github.com/redquake/redquake/internal/report/measured"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/version"
)

// LoadTest makes the report of a load with the faults on it.
func LoadTest(in subject.Input) *report.Document {
	s := subject.New(in)
	d := document(s, report.LoadTest)
	loadState(s, d)
	if s.NeverBegan() { // nothing was measured: neither no error nor no outage
		d.Finding, d.Done = loadFinding(s, d), loadDone(s)
		more(s, d, nil)
		return d
	}
	d.Objectives = objectives(s)
	d.Doubts = doubts(s)
	verdicts := map[string]report.Verdict{}
	for _, f := range s.Faults {
		verdicts[f.Name] = report.Verdict(f.Status.Verdict)
	}
	judgement.Settle(d, verdicts)
	d.Figures = figures.OfLoad(s)
	judgement.SetLimits(d)
	d.Finding, d.Done = loadFinding(s, d), loadDone(s)
	d.Timeline = timeline(s)
	curves(s, d, nil)
	faultsSection(s, d)
	for i := range s.Faults[:min(len(s.Faults), faultsShown)] {
		zoom(s, d, s.Faults[i], len(s.Faults) > 1)
	}
	d.Add(events.Timeline(d, quiet(s)), errorsSection(s), operations(s),
		measured.Shards(s.Load), measured.Search(s.Load.Search))
	d.Add(measured.Servers(s.Load, lookedTable(s)), measured.Verification(s.Verification()), measured.Guarantees(s.Guarantees()),
		judgement.Objectives(d))
	more(s, d, nil)
	return d
}

// faultsShown is how many faults of a load test are drawn in its report: the others have a report
// of their own.
const faultsShown = 3

// Fault makes the report of one fault.
func Fault(in subject.Input, name string) (*report.Document, error) {
	s := subject.New(in)
	i := slices.IndexFunc(s.In.Faults, func(f v1alpha1.RedisFault) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no RedisFault %s%s", name, named(s.In.Faults))
	}
	f := &s.In.Faults[i]
	if in.Test != nil && f.Status.LoadTest != "" && f.Status.LoadTest != in.Test.Name {
		return nil, fmt.Errorf("RedisFault %s was on RedisLoadTest %s, not on %s", name,
			f.Status.LoadTest, in.Test.Name)
	}
	one := s.FaultOf(f)
	d := document(s, report.Fault)
	d.Name, d.Namespace = f.Name, f.Namespace
	faultState(one, d)
	if f.Spec.Setting { // nothing is measured against it
		d.Finding, d.Done = settingFinding(one, d), faultDone(one)
		more(s, d, one)
		return d, nil
	}
	for i := range one.Result.Objectives {
		d.Objectives = append(d.Objectives, objectiveOf(&one.Result.Objectives[i], ""))
	}
	d.Doubts = faultDoubts(one, "")
	judgement.Settle(d, nil)
	d.Figures = figures.OfFault(one, "")
	judgement.SetLimits(d)
	d.Finding, d.Done = faultFinding(one, d), faultDone(one)
	d.Timeline = timelineOf(one, true)
	curves(s, d, one)
	zoom(s, d, one, false)
	d.Add(events.Timeline(d, quiet(s)), requestsSection(one), operationsSection(one),
		activeSection(one), measured.Servers(s.Load, lookedTable(s)), judgement.Objectives(d))
	more(s, d, one)
	return d, nil
}

func named(faults []v1alpha1.RedisFault) string {
	if len(faults) == 0 {
		return ": there is none"
	}
	text := ", but"
	for _, f := range faults {
		text += " " + f.Name
	}
	return text
}

// document begins a report.
func document(s *subject.Run, kind report.Kind) *report.Document {
	d := &report.Document{
		Version:  report.Version,
		Kind:     kind,
		Name:     s.In.Name,
		Redquake: version.Version,
		Time:     s.Start.UTC(),
		State:    report.Complete,
	}
	if s.Test != nil {
		d.Namespace, d.Name = s.Test.Namespace, s.Test.Name
	}
	return d
}

// objectiveOf is an objective in a report.
func objectiveOf(o *result.Objective, of string) report.Objective {
	return report.Objective{
		Name:    o.Name,
		Of:      of,
		Unit:    o.Unit,
		Limit:   o.Limit,
		Actual:  o.Actual,
		AtLeast: o.AtLeast,
		AtMost:  o.AtMost,
		Judged:  judgement.Of(o.Met),
		Message: o.Message,
	}
}

// objectives are those of the load, and of its faults.
func objectives(s *subject.Run) (list []report.Objective) {
	for i := range s.Load.Objectives {
		list = append(list, objectiveOf(&s.Load.Objectives[i], ""))
	}
	for _, f := range s.Faults {
		for i := range f.Result.Objectives {
			list = append(list, objectiveOf(&f.Result.Objectives[i], f.Name))
		}
	}
	return list
}

// operations is the figures of each operation. A load without a test was made by a process.
func operations(s *subject.Run) *report.Section {
	section := measured.Operations(s.Load, s.OpenLoop)
	if section != nil && s.Test == nil {
		for i := range section.Facts {
			section.Facts[i].Value = result.OnThisMachine(section.Facts[i].Value)
		}
	}
	return section
}

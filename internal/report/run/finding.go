package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/judgement"
)

// finding says in one sentence what happened: first what makes it worthless, or which objective is
// missed.
func (f *fault) finding(d *report.Document) report.Prose {
	switch {
	case d.Verdict == report.Inconclusive:
		return judgement.Inconclusive(d)
	case f.Status.InjectedAt == nil:
		return f.notInjected(d)
	case f.Status.Impact == nil && d.State == report.Failed:
		return report.Text(judgement.Headline("There are no figures", d.Reason))
	}
	p := f.effectFound()
	if lost := f.result.LostWrites(); lost != nil {
		if n, exact := lost.Exact(); exact && n > 0 {
			p = p.Damage(fmt.Sprintf(" %s acknowledged write%s %s lost.", report.Count(n),
				report.Plural(int(n)), map[bool]string{true: "was", false: "were"}[n == 1]))
		}
	}
	if missed := judgement.FirstMissed(d); missed != "" {
		p = p.Damage(" " + missed)
	}
	return p
}

// settingFinding says whether a setting was in force for its load.
func (f *fault) settingFinding(d *report.Document) report.Prose {
	held := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionHeld)
	switch {
	case f.Status.InjectedAt == nil:
		return f.notInjected(d)
	case held == nil:
		return report.Text("It is not known whether the setting was in force.")
	case held.Status == metav1.ConditionTrue && d.Verdict != "":
		return report.Text("The setting was in force while the load ran.")
	}
	return report.Text(report.Sentence(held.Message))
}

func (f *fault) notInjected(d *report.Document) report.Prose {
	name := string(f.Spec.Action.Type) + " was not injected"
	if d.State == report.Running || d.State == report.Pending {
		name = string(f.Spec.Action.Type) + " is not injected yet"
	}
	return report.Text(judgement.Headline(name, d.Reason))
}

// effectFound says what the fault did to whom, and when that was over.
func (f *fault) effectFound() report.Prose {
	what := string(f.Spec.Action.Type) + " of %s"
	if kind := declared.Of(&f.Spec); kind != nil {
		what = kind.Doing
	}
	target := f.targetName()
	if target == "" {
		target = "Redis"
	}
	p := append(report.Text(fmt.Sprintf(what, target)), f.outageFound()...)
	switch took, recovered := f.result.Recovery(); {
	case f.Status.SettledTime == nil && !recovered:
		return p.Add(" so far.")
	case !recovered:
		return p.Add(". ").Damage(fmt.Sprintf("The throughput was not back within %s.",
			report.Duration(f.waited())))
	case took.Value > 0:
		text := spanOf(took)
		after := "After "
		if text != report.Duration(took.Value) {
			after = "Within "
		}
		return p.Add(". " + after + text + " the throughput was back, and stayed.")
	}
	return p.Add(".")
}

// outageFound says for how long whom nothing was answered, or how deep the throughput fell.
func (f *fault) outageFound() report.Prose {
	if length := f.outage(); length != "" {
		whom := "the clients"
		longest := f.result.Outage()
		switch of := ofWhat(longest); longest.Of {
		case impact.Shard:
			whom = "the clients of " + of
		case impact.Probe:
			whom = of
		case impact.Reads, impact.Writes:
			whom = "the " + of + " of the clients"
		}
		return report.Text(" left " + whom + " without a single answer ").Damage("for " + length)
	}
	dip, of := f.dip()
	if dip < .005 {
		return report.Text(" changed nothing that the clients could see")
	}
	if of == "" {
		of = "throughput"
	}
	return report.Text(" took ").Damage(report.Share(dip)).Add(" of the " + of + " at most")
}

// done says what was done to what, whether that had an effect, and under which load.
func (f *fault) done() report.Prose {
	var p report.Prose
	p = p.Strong(string(f.Spec.Action.Type))
	role := f.Spec.Select.Role
	if role != "" && len(f.Status.Targets) > 0 {
		p = p.Add(fmt.Sprintf(" of the %s %s", strings.ToLower(string(role)), f.targetName()))
	} else if name := f.targetName(); name != "" {
		p = p.Add(" of " + name)
	}
	if at := f.Status.InjectedAt; at != nil {
		p = p.Add(" at " + at.UTC().Format("15:04:05.000"))
	}
	if f.Status.Effect != "" {
		p = p.Add(" · effect ").Strong(strings.ToLower(string(f.Status.Effect)))
		if f.Status.EffectEvidence != "" {
			p = p.Add(": " + f.Status.EffectEvidence)
		}
	}
	if b := f.Status.Breach; b != nil {
		p = p.Add(" · ").Damage("ended early by " + b.Condition).Add(": " + b.Message)
	}
	return append(p, f.subject.under()...)
}

// under says which load there was on which Redis.
func (s *subject) under() report.Prose {
	var p report.Prose
	if s.load.Shape != "" {
		p = p.Add(" · under ").Strong(s.load.Shape)
		if s.test != nil && s.test.Status.LoadPods != nil {
			n := s.test.Status.LoadPods.Desired
			p = p.Add(fmt.Sprintf(", from %d load pod%s", n, report.Plural(int(n))))
		}
	}
	t := &s.load.Target
	if t.Version != "" || t.Topology != "" {
		p = p.Add(" · " + strings.TrimSpace(strings.Join([]string{t.Server, t.Version}, " ")))
		if t.Topology != "" {
			p = p.Add(", " + strings.ToLower(t.Topology))
		}
		at := append(slices.Clone(t.Addresses), t.Sentinels...)
		if s.test == nil && len(at) > 0 {
			p = p.Add(" at " + strings.Join(at, ","))
		}
	}
	return p
}

// loadFinding says in one sentence what the load had, and what its faults did.
func (s *subject) loadFinding(d *report.Document) report.Prose {
	switch {
	case d.Verdict == report.Inconclusive:
		return judgement.Inconclusive(d)
	case d.State == report.Failed, s.neverBegan():
		text := "The load did not run to its end"
		switch {
		case d.State == report.Pending:
			text = "The load has not begun"
		case s.neverBegan():
			text = "The load never began"
		}
		return report.Text(judgement.Headline(text, d.Reason))
	}
	p := s.served(d)
	if len(s.faults) == 1 {
		p = append(p.Add(" "), s.faults[0].effectFound()...)
	} else if len(s.faults) > 1 {
		p = append(p, s.faultsFound()...)
	}
	if missed := judgement.FirstMissed(d); missed != "" {
		p = p.Damage(" " + missed)
	}
	return p
}

// faultsFound is the worst of several faults, in one sentence.
func (s *subject) faultsFound() report.Prose {
	var outage, recovery durations.Bounded
	var worst, slowest string
	missing := 0
	for _, f := range s.faults {
		if o := f.result.Outage(); o.Value > outage.Value {
			outage, worst = o.Bounded, f.Name
		}
		switch took, recovered := f.result.Recovery(); {
		case !recovered:
			missing++
		case took.Value > recovery.Value:
			recovery, slowest = took, f.Name
		}
	}
	p := report.Text(fmt.Sprintf(" Of %d faults ", len(s.faults)))
	if outage.Value == 0 {
		p = p.Add("none left the clients without an answer")
	} else {
		p = p.Add(worst + " left them without a single answer for longest, ").Damage(spanOf(outage))
	}
	switch {
	case missing > 0:
		return p.Add("; ").Damage(fmt.Sprintf("after %d of them the throughput was not back.", missing))
	case recovery.Value > 0:
		return p.Add(fmt.Sprintf("; the slowest recovery, from %s, took %s.", slowest, spanOf(recovery)))
	}
	return p.Add(".")
}

// served is the sentence of the throughput.
func (s *subject) served(d *report.Document) report.Prose {
	t := &s.load.Total
	if t.Requests == 0 {
		if d.State == report.Running {
			return report.Text("The measured time has not begun.")
		}
		return report.Text("No request was made in the measured time.")
	}
	verb := "were served"
	if d.State == report.Running {
		verb = "are served so far"
	}
	p := report.Text(report.Rate(t.Throughput) + " " + verb)
	if q := t.Latency; q != nil {
		p = p.Add(", half of them within " + report.Seconds(q.P50) + ", 99\u00a0% within " +
			report.Seconds(q.P99))
	}
	if t.Errors() == 0 {
		return p.Add(", without an error.")
	}
	return p.Add("; ").Damage(report.Share(t.ErrorRate)).Add(" ended in an error.")
}

// loadDone says which load there was, for how long, and on what.
func (s *subject) loadDone() report.Prose {
	p := s.under()
	length := time.Duration(s.load.Elapsed)
	if s.in.Series != nil {
		length = s.in.Series.End()
	}
	if length > 0 {
		p = p.Add(" · for " + report.Duration(length.Round(100*time.Millisecond)))
		// a search may end before its longest duration
		planned := time.Duration(s.load.Planned)
		if length < planned && s.load.Search == nil {
			p = p.Add(" of " + report.Duration(planned))
		}
		if s.from > 0 {
			p = p.Add(", measured from " + report.Duration(s.from) + " on")
		}
	}
	if b := s.load.Bottleneck; b != nil {
		p = p.Add(" · bottleneck ").Strong(b.Component)
	}
	if len(p) > 0 {
		p[0].Text = strings.TrimPrefix(strings.TrimPrefix(p[0].Text, " · under "), " · ")
	}
	return p
}

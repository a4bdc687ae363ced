package run

import (
	"fmt"
	"regexp"
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
	"github.com/redquake/redquake/internal/report/subject"
)

// faultFinding says in one sentence what happened: first what makes it worthless, or which
// objective is missed.
func faultFinding(f *subject.Fault, d *report.Document) report.Prose {
	switch {
	case d.Verdict == report.Inconclusive:
		return judgement.Inconclusive(d)
	case f.Status.InjectedAt == nil:
		return notInjected(f, d)
	case f.Status.Impact == nil && d.State == report.Failed:
		return report.Text(judgement.Headline("There are no figures", d.Reason))
	}
	p := effectFound(f)
	if lost := f.Result.LostWrites(); lost != nil {
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
func settingFinding(f *subject.Fault, d *report.Document) report.Prose {
	held := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionHeld)
	switch {
	case f.Status.InjectedAt == nil:
		return notInjected(f, d)
	case held == nil:
		return report.Text("It is not known whether the setting was in force.")
	case held.Status == metav1.ConditionTrue && d.Verdict != "":
		return report.Text("The setting was in force while the load ran.")
	}
	return report.Text(report.Sentence(held.Message))
}

func notInjected(f *subject.Fault, d *report.Document) report.Prose {
	name := string(f.Spec.Action.Type) + " was not injected"
	if d.State == report.Running || d.State == report.Pending {
		name = string(f.Spec.Action.Type) + " is not injected yet"
	}
	return report.Text(judgement.Headline(name, d.Reason))
}

// effectFound says what the fault did to whom, and when that was over.
func effectFound(f *subject.Fault) report.Prose {
	what := string(f.Spec.Action.Type) + " of %s"
	if kind := declared.Of(&f.Spec); kind != nil {
		what = kind.Doing
	}
	target := f.TargetName()
	if target == "" {
		target = "Redis"
	}
	p := append(report.Text(fmt.Sprintf(what, target)), outageFound(f)...)
	switch took, recovered := f.Result.Recovery(); {
	case f.Status.SettledTime == nil && !recovered:
		return p.Add(" so far.")
	case !recovered:
		return p.Add(". ").Damage(fmt.Sprintf("The throughput was not back within %s.",
			report.Duration(f.Waited())))
	case took.Value > 0:
		text := subject.Span(took)
		after := "After "
		if text != report.Duration(took.Value) {
			after = "Within "
		}
		return p.Add(". " + after + text + " the throughput was back, and stayed.")
	}
	return p.Add(".")
}

// outageFound says for how long whom nothing was answered, or how deep the throughput fell.
func outageFound(f *subject.Fault) report.Prose {
	if length := f.Outage(); length != "" {
		whom := "the clients"
		longest := f.Result.Outage()
		switch of := subject.OfWhat(longest); longest.Of {
		case impact.Shard:
			whom = "the clients of " + of
		case impact.Probe:
			whom = of
		case impact.Reads, impact.Writes:
			whom = "the " + of + " of the clients"
		}
		return report.Text(" left " + whom + " without a single answer ").Damage("for " + length)
	}
	dip, of := f.Dip()
	if dip < .005 {
		return report.Text(" changed nothing that the clients could see")
	}
	if of == "" {
		of = "throughput"
	}
	return report.Text(" took ").Damage(report.Share(dip)).Add(" of the " + of + " at most")
}

// identifier is a UID of a pod or a run_id of a server. Their begin tells two apart: the timeline
// has them whole.
var identifier = regexp.MustCompile(`\b([0-9a-f]{8})(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})\b`)

// faultDone says what was done to what, whether that had an effect, and under which load.
func faultDone(f *subject.Fault) report.Prose {
	var p report.Prose
	p = p.Strong(string(f.Spec.Action.Type))
	role := f.Spec.Select.Role
	if role != "" && len(f.Status.Targets) > 0 {
		p = p.Add(fmt.Sprintf(" of the %s %s", strings.ToLower(string(role)), f.TargetName()))
	} else if name := f.TargetName(); name != "" {
		p = p.Add(" of " + name)
	}
	if at := f.Status.InjectedAt; at != nil {
		p = p.Add(" at " + at.UTC().Format("15:04:05.000"))
	}
	if f.Status.Effect != "" {
		p = p.Add(" · effect ").Strong(strings.ToLower(string(f.Status.Effect)))
		if f.Status.EffectEvidence != "" {
			p = p.Add(": " + identifier.ReplaceAllString(f.Status.EffectEvidence, "$1…"))
		}
	}
	if b := f.Status.Breach; b != nil {
		p = p.Add(" · ").Damage("ended early by " + b.Condition).Add(": " + b.Message)
	}
	return append(p, under(f.Run)...)
}

// under says which load there was on which Redis.
func under(s *subject.Run) report.Prose {
	var p report.Prose
	if s.Load.Shape != "" {
		p = p.Add(" · under ").Strong(s.Load.Shape)
		if s.Test != nil && s.Test.Status.LoadPods != nil {
			n := s.Test.Status.LoadPods.Desired
			p = p.Add(fmt.Sprintf(", from %d load pod%s", n, report.Plural(int(n))))
		}
	}
	t := &s.Load.Target
	if t.Version != "" || t.Topology != "" {
		server := strings.TrimSpace(t.Server + " " + t.Version) // a proxy tells neither
		if server != "" && t.Topology != "" {
			server += ", "
		}
		p = p.Add(" · " + server + strings.ToLower(t.Topology))
		at := append(slices.Clone(t.Addresses), t.Sentinels...)
		if s.Test == nil && len(at) > 0 {
			p = p.Add(" at " + strings.Join(at, ","))
		}
	}
	return p
}

// loadFinding says in one sentence what the load had, and what its faults did.
func loadFinding(s *subject.Run, d *report.Document) report.Prose {
	switch {
	case d.Verdict == report.Inconclusive:
		return judgement.Inconclusive(d)
	case d.State == report.Failed, s.NeverBegan():
		text := "The load did not run to its end"
		switch {
		case d.State == report.Pending:
			text = "The load has not begun"
		case s.NeverBegan():
			text = "The load never began"
		}
		return report.Text(judgement.Headline(text, d.Reason))
	}
	p := served(s, d)
	if len(s.Faults) == 1 {
		p = append(p.Add(" "), effectFound(s.Faults[0])...)
	} else if len(s.Faults) > 1 {
		p = append(p, faultsFound(s)...)
	}
	if missed := judgement.FirstMissed(d); missed != "" {
		p = p.Damage(" " + missed)
	}
	return p
}

// faultsFound is the worst of several faults, in one sentence.
func faultsFound(s *subject.Run) report.Prose {
	var outage, recovery durations.Bounded
	var worst, slowest string
	missing := 0
	for _, f := range s.Faults {
		if o := f.Result.Outage(); o.Value > outage.Value {
			outage, worst = o.Bounded, f.Name
		}
		switch took, recovered := f.Result.Recovery(); {
		case !recovered:
			missing++
		case took.Value > recovery.Value:
			recovery, slowest = took, f.Name
		}
	}
	p := report.Text(fmt.Sprintf(" Of %d faults ", len(s.Faults)))
	if outage.Value == 0 {
		p = p.Add("none left the clients without an answer")
	} else {
		p = p.Add(worst + " left them without a single answer for longest, ").Damage(subject.Span(outage))
	}
	switch {
	case missing > 0:
		return p.Add("; ").Damage(fmt.Sprintf("after %d of them the throughput was not back.", missing))
	case recovery.Value > 0:
		return p.Add(fmt.Sprintf("; the slowest recovery, from %s, took %s.", slowest,
			subject.Span(recovery)))
	}
	return p.Add(".")
}

// served is the sentence of the throughput.
func served(s *subject.Run, d *report.Document) report.Prose {
	t := &s.Load.Total
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
func loadDone(s *subject.Run) report.Prose {
	p := under(s)
	length := time.Duration(s.Load.Elapsed)
	if s.In.Series != nil {
		length = s.In.Series.End()
	}
	if length > 0 {
		p = p.Add(" · for " + report.Duration(length.Round(100*time.Millisecond)))
		// a search may end before its longest duration
		planned := time.Duration(s.Load.Planned)
		if length < planned && s.Load.Search == nil {
			p = p.Add(" of " + report.Duration(planned))
		}
		if s.From > 0 {
			p = p.Add(", measured from " + report.Duration(s.From) + " on")
		}
	}
	if b := s.Load.Bottleneck; b != nil {
		p = p.Add(" · bottleneck ").Strong(b.Component)
	}
	if len(p) > 0 {
		p[0].Text = strings.TrimPrefix(strings.TrimPrefix(p[0].Text, " · under "), " · ")
	}
	return p
}

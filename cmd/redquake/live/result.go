package live

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/format"
)

// Result is how an object stands or has ended, in a few lines: its verdict, what it found, and what is wrong with that.
func Result(o *kube.Object) string {
	var b strings.Builder
	reason, message := o.State()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	head := o.Ref() + "  " + reason
	if v := o.Verdict(); v != "" {
		head += "  " + string(v)
	}
	fmt.Fprintln(&b, head)
	if message != "" {
		line("Result", "%s", message)
	}
	switch o.Kind {
	case kube.LoadTest:
		ofLoadTest(o.Test, line)
	case kube.Fault:
		ofFault(o, line)
	default:
		for i := range o.Experiment.Status.Comparison {
			if c := &o.Experiment.Status.Comparison[i]; c.Verdict == v1alpha1.ComparisonWorse || c.Verdict == v1alpha1.ComparisonRegressed {
				line(string(c.Verdict), "%s", c.Message)
			}
		}
		for _, n := range o.Experiment.Status.Notes {
			line("Note", "%s", n)
		}
	}
	return b.String()
}

func ofLoadTest(test *v1alpha1.RedisLoadTest, line func(name, format string, args ...any)) {
	s := &test.Status
	objectives(s.Objectives, line)
	if d := s.Display; d != nil {
		if d.Trend != "" {
			line("Trend", "%s", d.Trend)
		}
		if d.Faults != "" {
			line("Faults", "%s", d.Faults)
		}
		if d.LostWrites != "" {
			line("Lost writes", "%s", d.LostWrites)
		}
	}
	if s.Bottleneck != nil {
		line("Bottleneck", "%s: %s", s.Bottleneck.Component, s.Bottleneck.Evidence)
	}
	for i := range s.Anomalies {
		if a := &s.Anomalies[i]; a.At != nil && s.StartTime != nil {
			line("Anomaly", "a drop that no fault explains, %s after the start, for %s", format.Duration(a.At.Sub(s.StartTime.Time)), format.Duration(a.Length.Duration()))
		}
	}
}

func ofFault(o *kube.Object, line func(name, format string, args ...any)) {
	s := &o.Fault.Status
	if figures := FaultFigures(o.Fault); figures != "" {
		line("Clients", "%s", figures)
	}
	if phases := Phases(o.Fault); phases != "" {
		line("Phases", "%s", phases)
	}
	if s.Effect != "" {
		line("Effect", "%s: %s", s.Effect, s.EffectEvidence)
	}
	objectives(s.Objectives, line)
	if s.Impact != nil {
		for _, d := range s.Impact.Doubts {
			line("Doubt", "%s: %s", d.Reason, d.Message)
		}
	}
	for _, w := range s.Warnings {
		line("Warning", "%s", w)
	}
	for _, command := range o.Unreverted() {
		line("Not reverted", "by hand, on %s", command)
	}
}

// objectives are those that are not met, or could not be judged: the message of the state counts them all.
func objectives(all []v1alpha1.ObjectiveResult, line func(name, format string, args ...any)) {
	for i := range all {
		if o := &all[i]; o.Met == nil || !*o.Met {
			line("Objective", "%s", cmp.Or(o.Message, o.Name+" could not be judged"))
		}
	}
}

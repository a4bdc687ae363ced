package live

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/format"
)

// faultLines are a fault in at most so many lines: its state, its figures, and the end of its
// timeline.
func faultLines(s *State, o *kube.Object, most, width int) []string {
	f := o.Fault
	reason, message := s.of(o)
	first := []string{bold.Render(o.Ref()), string(f.Spec.Action.Type), reason}
	if v := verdict(f.Status.Verdict); v != "" {
		first = append(first, v)
	}
	if d := f.Status.Display; d != nil && d.Target != "" {
		first = append(first, d.Target)
	}
	if f.Status.Effect != "" {
		first = append(first, "effect "+string(f.Status.Effect))
	}
	lines := []string{"", strings.Join(first, "  ")}
	if figures := FaultFigures(f); figures != "" {
		lines = append(lines, "  "+figures)
	}
	if phases := Phases(f); phases != "" {
		lines = append(lines, "  "+faint.Render(phases))
	} else if message != "" {
		text := strings.Split(ansi.Wordwrap(message, width-2, ""), "\n")
		for _, line := range text[:min(len(text), 2)] {
			lines = append(lines, "  "+faint.Render(line))
		}
	}
	events := f.Status.Timeline
	if room := most - len(lines); len(events) > room {
		events = events[len(events)-max(0, room):]
	}
	for i := range events {
		lines = append(lines, "  "+Event(&events[i], f.Status.InjectedAt != nil, "%9s  %-18s %s"))
	}
	return lines
}

// FaultFigures are the figures of a fault so far, in a line.
func FaultFigures(f *v1alpha1.RedisFault) string {
	d := f.Status.Display
	if d == nil {
		return ""
	}
	var parts []string
	for _, figure := range []struct{ name, value string }{
		{"dip", d.Dip},
		{"outage", d.Outage},
		{"recovery", d.Recovery},
		{"lost writes", d.LostWrites},
		{"while active", d.WhileActive},
	} {
		if figure.value != "" {
			parts = append(parts, figure.name+" "+figure.value)
		}
	}
	return strings.Join(parts, "   ")
}

// Phases are the parts of a recovery in a line; "" if there are none.
func Phases(f *v1alpha1.RedisFault) string {
	if f.Status.Impact == nil || len(f.Status.Impact.Phases) == 0 {
		return ""
	}
	var parts []string
	for _, p := range f.Status.Impact.Phases {
		if p.Duration != nil {
			parts = append(parts, p.Name+" "+format.Duration(p.Duration.Value.Duration))
		}
	}
	return "recovery = " + strings.Join(parts, " + ")
}

// Event is an event of a timeline: its offset, its name and its object in a layout, then its
// message. Before the injection the offset means nothing.
func Event(e *v1alpha1.TimelineEvent, injected bool, layout string) string {
	offset := ""
	if injected {
		offset = format.Duration(e.Offset.Duration)
		if e.Offset.Duration >= 0 {
			offset = "+" + offset
		}
	}
	text := fmt.Sprintf(layout, offset, e.Event, e.Object)
	if e.Message != "" {
		text += "  " + e.Message
	}
	return strings.TrimRight(text, " ")
}

// experimentLines are an experiment: where it stands, the run that is under way, and what was found
// so far.
func experimentLines(s *State, o *kube.Object) []string {
	e := o.Experiment
	lines := []string{title(s, o)}
	var parts []string
	if p := e.Status.Progress; p != nil {
		text := fmt.Sprintf("%d of %d runs", p.Finished, p.Runs)
		if p.Inconclusive > 0 {
			text += fmt.Sprintf(", %d inconclusive", p.Inconclusive)
		}
		if p.Failed > 0 {
			text += fmt.Sprintf(", %d failed", p.Failed)
		}
		parts = append(parts, text)
	}
	if d := e.Status.Display; d != nil && d.Worse != "" {
		parts = append(parts, "worse "+d.Worse)
	}
	if end := expectedEnd(s, o); end != "" {
		parts = append(parts, end)
	}
	if len(parts) > 0 {
		lines = append(lines, strings.Join(parts, "   "))
	}
	if run := RunText(e); run != "" {
		lines = append(lines, run)
	}
	for _, w := range e.Status.Warnings[:min(2, len(e.Status.Warnings))] {
		lines = append(lines, faint.Render("warning: "+w))
	}
	return lines
}

// expectedEnd is when an experiment is expected to end; "" if that is not known.
func expectedEnd(s *State, o *kube.Object) string {
	end := o.Experiment.Status.ExpectedEnd
	if end == nil || o.Finished() {
		return ""
	}
	return fmt.Sprintf("ends at %s, in %s", end.In(s.Now.Location()).Format("15:04"),
		format.Duration(max(0, end.Sub(s.Now)).Round(1e9)))
}

// RunText is the run of an experiment that is under way; "" if there is none.
func RunText(e *v1alpha1.RedisExperiment) string {
	run := e.Status.Run
	if run == nil {
		return ""
	}
	return fmt.Sprintf("run %d, round %d: %s: %s", run.Number, run.Round, run.Cell, run.Stage)
}

package live

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/cmd/redquake/kube"
)

// everyPlain is how often the figures of a load are a line of text.
const everyPlain = 10 * time.Second

// Plain makes lines of text of states: what has changed since the one before. They need no
// terminal.
type Plain struct {
	seen    map[types.UID]*shown
	trouble string
}

// shown is what was written of an object.
type shown struct {
	state   string // reason, or more where the message of a state counts
	verdict string
	events  map[string]bool // by what and when: later ones may be inserted before them
	run     string
	figures time.Time
	// runs of an experiment, with which its end was written
	finished int32
}

// NewPlain returns one that has written nothing.
func NewPlain() *Plain {
	return &Plain{seen: map[types.UID]*shown{}}
}

// Next are the lines for what is new in a state.
func (p *Plain) Next(s *State) []string {
	var lines []string
	clock := s.Now.Format(time.TimeOnly)
	write := func(of, format string, args ...any) {
		lines = append(lines,
			strings.TrimRight(fmt.Sprintf("%s  %s  %s", clock, of, fmt.Sprintf(format, args...)), " "))
	}
	if s.Trouble != p.trouble {
		p.trouble = s.Trouble
		write("cluster", "%s", cmp.Or(s.Trouble, "answers again"))
	}
	for _, o := range s.Objects {
		p.object(s, o, func(format string, args ...any) { write(o.Ref(), format, args...) })
	}
	return lines
}

func (p *Plain) object(s *State, o *kube.Object, write func(format string, args ...any)) {
	was := p.seen[o.Meta().UID]
	if was == nil {
		was = &shown{figures: s.Now, events: map[string]bool{}}
		p.seen[o.Meta().UID] = was
	}
	was.steps(s, o, write)
	reason, message := s.of(o)
	now, state := string(o.Verdict()), reason
	if reason == kube.NotObserved {
		state = message
	}
	if state != was.state || now != was.verdict {
		was.state, was.verdict = state, now
		text := reason
		if message != "" {
			text += ": " + message
		}
		if now != "" && !strings.Contains(message, now) {
			text += "; " + now
		}
		write("%s", text)
	}
	if o.Test == nil || o.Finished() || o.Test.Status.StartTime == nil ||
		s.Now.Sub(was.figures) < everyPlain {
		return
	}
	was.figures = s.Now
	text := figures(o.Test, s.Courses[o.Test.Name])
	if text != "" {
		write("%d%%   %s", o.Test.Status.Progress, ansi.Strip(text))
	}
}

// steps writes what is new in the timeline of a fault, and the run of an experiment.
func (was *shown) steps(s *State, o *kube.Object, write func(format string, args ...any)) {
	if o.Fault != nil {
		for i := range o.Fault.Status.Timeline {
			e := &o.Fault.Status.Timeline[i]
			key := fmt.Sprintf("%s %s %d", e.Event, e.Object, e.At.UnixMicro())
			if !was.events[key] {
				was.events[key] = true
				write("%s", strings.TrimSpace(Event(e, o.Fault.Status.InjectedAt != nil, "%s %s %s")))
			}
		}
	}
	if o.Experiment == nil {
		return
	}
	if run := RunText(o.Experiment); run != was.run {
		was.run = run
		if run != "" {
			write("%s", run)
		}
	}
	progress, end := o.Experiment.Status.Progress, expectedEnd(s, o)
	if end != "" && progress != nil && progress.Finished != was.finished {
		was.finished = progress.Finished
		write("%d of %d runs, %s", progress.Finished, progress.Runs, end)
	}
}

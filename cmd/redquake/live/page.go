package live

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/format"
)

// Colors repeat what words say: without them nothing is lost.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	marks  = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	curves = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	ofPass = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Green)
	ofFail = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	ofElse = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Yellow)
)

func verdict(v v1alpha1.Verdict) string {
	switch v {
	case "":
		return ""
	case v1alpha1.VerdictPass:
		return ofPass.Render(string(v))
	case v1alpha1.VerdictFail:
		return ofFail.Render(string(v))
	}
	return ofElse.Render(string(v))
}

// gutter is the width of what stands left of a chart: p99 12.3ms, and a space.
const gutter = 11

// smallest is the size below which the page is cut off, and least is how many lines of a fault's
// timeline it shows.
const (
	smallest = 40
	least    = 3
)

// Page is the state as the lines of a terminal of this size, with the escape sequences of its
// colors.
func Page(s *State, width, height int) string {
	width, height = max(width, smallest), max(height, 10)
	foot := []string{faint.Render(s.Hint)}
	if s.Trouble != "" {
		foot = append([]string{ofElse.Render("No news: ") + s.Trouble}, foot...)
	}
	head, test := headLines(s)
	var below []string
	faults := faultsOf(s)
	room := height - len(head) - len(foot)
	for i, o := range faults {
		share := max(least+2, (room-8)/len(faults))
		if i > 0 {
			share = min(share, least+2)
		}
		below = append(below, faultLines(s, o, share, width)...)
	}
	var charts []string
	if room -= len(below); test != nil && len(rowsOf(s.Courses[test.Name])) > 0 && room >= 5 {
		charts = chartLines(s, test, width, min(room-1, 14))
	}
	lines := slices.Concat(head, charts)
	keep := height - len(foot)
	if len(lines)+len(below) > keep {
		below = below[:max(0, keep-len(lines))]
	}
	lines = append(append(lines, below...), foot...)
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, width, "…")
	}
	return strings.Join(lines, "\n")
}

// headLines are the lines of load tests and experiments, and the load test that is drawn: the last
// that is not over.
func headLines(s *State) (head []string, test *v1alpha1.RedisLoadTest) {
	for _, o := range s.Objects {
		switch o.Kind {
		case kube.LoadTest:
			if test == nil || !o.Finished() {
				test = o.Test
			}
			head = append(head, title(s, o), figures(o.Test, s.Courses[o.Test.Name]))
		case kube.Experiment:
			head = append(head, experimentLines(s, o)...)
		}
	}
	if len(s.Objects) == 0 {
		head = append(head, "waiting for the API server")
	}
	return head, test
}

func faultsOf(s *State) (faults []*kube.Object) {
	for _, o := range s.Objects {
		if o.Kind == kube.Fault {
			faults = append(faults, o)
		}
	}
	return faults
}

// title is the first line of an object.
func title(s *State, o *kube.Object) string {
	reason, message := s.of(o)
	parts := []string{bold.Render(o.Ref()), reason}
	if v := verdict(o.Verdict()); v != "" {
		parts = append(parts, v)
	}
	if o.Test != nil {
		planned := Planned(&o.Test.Spec.Load)
		if o.Test.Status.StartTime != nil && !o.Finished() {
			parts = append(parts, fmt.Sprintf("%d%%", o.Test.Status.Progress))
			if planned > 0 {
				parts = append(parts, "of "+format.Duration(planned))
			}
			return strings.Join(parts, "  ")
		}
	}
	if message != "" {
		parts = append(parts, faint.Render(message))
	}
	return strings.Join(parts, "  ")
}

// figures is the line with the figures of a load test.
func figures(test *v1alpha1.RedisLoadTest, course *Course) string {
	var parts []string
	rate, p99 := course.Now()
	if rate > 0 || course.End() > 0 {
		now := "now " + format.Rate(rate) + "/s"
		if p99 > 0 {
			now += ", p99 " + format.Duration(p99)
		}
		parts = append(parts, now)
	}
	if s := test.Status.Summary; s != nil && s.Requests > 0 {
		mean := "mean " + test.Status.Display.TPS + "/s"
		if test.Status.Display.P99 != "" {
			mean += ", p99 " + test.Status.Display.P99
		}
		parts = append(parts, mean, fmt.Sprintf("errors %d (%s)", s.Errors, test.Status.Display.Errors))
	}
	if p := test.Status.LoadPods; p != nil {
		pods := fmt.Sprintf("pods %d/%d", p.Ready, p.Desired)
		if p.Lost > 0 {
			pods += ofElse.Render(fmt.Sprintf(", %d lost", p.Lost))
		}
		parts = append(parts, pods)
	}
	return strings.Join(parts, "   ")
}

// chartLines are throughput and latency over time, and the instants of the faults.
func chartLines(s *State, test *v1alpha1.RedisLoadTest, width, height int) []string {
	course := s.Courses[test.Name]
	end := max(course.End(), s.Now.Sub(test.Status.StartTime.Time))
	if test.Status.CompletionTime != nil {
		end = course.End()
	}
	x := axisOf(end, width-gutter)
	rates := x.values(course, func(r Row) float64 { return r.Rate }, math.Min)
	p99 := x.values(course, func(r Row) float64 {
		if r.P99 <= 0 {
			return math.NaN()
		}
		return float64(r.P99)
	}, math.Max)
	low := max(1, (height-3)/3)
	upper, top := chart(rates, max(1, height-3-low))
	lower, most := chart(p99, low)
	lines := []string{""}
	for i, line := range upper {
		lines = append(lines, label(i, "", format.Rate(top)+"/s")+curves.Render(line))
	}
	lines = append(lines, label(0, "", "")+markLine(s, test, x))
	for i, line := range lower {
		lines = append(lines, label(i, "p99", format.Duration(time.Duration(most)))+faint.Render(line))
	}
	return append(lines, faint.Render(label(0, "", "")+timeLine(x)))
}

func rowsOf(c *Course) []Row {
	if c == nil {
		return nil
	}
	return c.Rows
}

// label is what stands left of line i of a chart: without its name rather than without its unit.
func label(i int, name, value string) string {
	text := ""
	if i == 0 {
		text = strings.TrimSpace(name + " " + value)
	}
	if ansi.StringWidth(text) >= gutter {
		text = ansi.Truncate(value, gutter-1, "")
	}
	return fmt.Sprintf("%*s ", gutter-1, text)
}

// markLine is the line with the instants at which faults were injected.
func markLine(s *State, test *v1alpha1.RedisLoadTest, x axis) string {
	line := []rune(strings.Repeat("─", x.columns))
	for _, o := range faultsOf(s) {
		f := o.Fault
		if f.Status.InjectedAt == nil || f.Spec.Setting || LoadOf(f) != test.Name {
			continue
		}
		c := x.column(f.Status.InjectedAt.Sub(test.Status.StartTime.Time))
		if c >= 0 {
			copy(line[c:], []rune("▲"+f.Name+" "))
		}
	}
	return marks.Render(string(line))
}

// timeLine is the line with the time of some columns, each with its first letter there, and of the
// end.
func timeLine(x axis) string {
	const apart = 14 // columns between two times at least
	length := x.each * time.Duration(x.columns)
	last := format.Duration(length)
	line := []rune(strings.Repeat(" ", max(x.columns, 3+len(last))))
	copy(line, []rune("0s"))
	end := len(line) - len(last)
	copy(line[end:], []rune(last))
	step := steps[len(steps)-1]
	for _, s := range slices.Backward(steps) {
		if s >= x.each*apart {
			step = s
		}
	}
	for at := step; at < length; at += step {
		text := format.Duration(at)
		if c := x.column(at); c+len(text) < end {
			copy(line[c:], []rune(text))
		}
	}
	return string(line)
}

// steps are the distances between the times below a chart.
var steps = []time.Duration{
	5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour,
}

package matrix

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/intervals"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// effect is what a group of cells has in common in one figure.
type effect struct {
	group  string
	figure compare.Figure
	rows   []*comparisons.Comparison
}

func (e *effect) count(verdicts ...string) (n int) {
	for _, r := range e.rows {
		if slices.Contains(verdicts, r.Verdict) {
			n++
		}
	}
	return n
}

func (e *effect) worse() int {
	return e.count("Worse", "Regressed")
}

func (e *effect) better() int {
	return e.count("Better", "Improved")
}

// changes are the least and the greatest logarithm of those rows that have one of the verdicts.
func (e *effect) changes(verdicts ...string) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, r := range e.rows {
		if slices.Contains(verdicts, r.Verdict) && r.Change != nil {
			log := math.Log1p(*r.Change)
			low, high = min(low, log), max(high, log)
		}
	}
	return low, high
}

// effects are those of each group in each primary figure but counted ones, in the order of the
// figures.
func (s *subject) effects(rows []comparisons.Comparison) (list []effect) {
	for i := range rows {
		r := &rows[i]
		f := compare.FigureNamed(r.Figure)
		cell := s.CellNamed(r.Cell)
		if !r.Primary || f.Counted || cell < 0 {
			continue
		}
		group, _ := s.GroupOf(cell)
		at := slices.IndexFunc(list, func(e effect) bool {
			return e.group == group &&
				e.figure.Name == f.Name
		})
		if at < 0 {
			at = len(list)
			list = append(list, effect{group: group, figure: f})
		}
		list[at].rows = append(list[at].rows, r)
	}
	return list
}

// finding is what the experiment has found, in one or two sentences.
func (s *subject) finding() report.Prose {
	switch {
	case s.State == report.Pending:
		return report.Text(fmt.Sprintf("No run yet: %s of %s are planned.",
			wording.Plural(s.Planned, "run"), wording.Plural(len(s.Cells), "cell")))
	case len(s.Runs) == 0:
		return report.Text("It ended before its first run.")
	case s.Provisional():
		return report.Text(fmt.Sprintf("%d of %s: no verdict yet.", len(s.Runs),
			wording.Plural(s.Planned, "run")))
	}
	effects := s.effects(s.Table.Comparisons)
	if s.Earlier != nil && s.Earlier.Regressed == string(metav1.ConditionTrue) { // the gravest news
		return s.sinceEarlier()
	}
	at := slices.IndexFunc(effects, func(e effect) bool { return e.worse() > 0 })
	if at >= 0 {
		return s.worst(effects, effects[at].figure)
	}
	at = slices.IndexFunc(effects, func(e effect) bool { return e.better() > 0 })
	if at >= 0 {
		e := &effects[at]
		return report.Text("Nothing is worse. ").Strong(s.Named(e.group)).
			Add(" " + e.verb(e.inCells(e.better()), "Better", "Improved") + ".")
	}
	return s.nothing(effects)
}

// nothing says that no difference was found.
func (s *subject) nothing(effects []effect) report.Prose {
	same, all := 0, 0
	for i := range effects {
		same += effects[i].count("Same")
		all += len(effects[i].rows)
	}
	switch {
	case all == 0 && s.Earlier != nil:
		return s.sinceEarlier()
	case all == 0:
		return report.Text("Nothing was compared.")
	case same == all:
		return report.Text("Everything is the same within its margin.")
	case needed(effects) > 0 && s.Repeat > 0:
		return report.Text(fmt.Sprintf("%s of each cell cannot show a difference: at least %d are needed.",
			wording.Plural(s.Repeat, "repeat"), needed(effects)))
	case same == 0:
		return report.Text(
			"No difference was found. These repeats are too few to call anything the same.")
	}
	return report.Text(fmt.Sprintf(
		"No difference was found: %d of %s are the same within their margin, the others are inconclusive.",
		same, wording.Plural(all, "comparison")))
}

// needed is how many repeats are needed at least if all comparisons have too few, but for those
// whose runs are in doubt; otherwise 0.
func needed(effects []effect) (most int) {
	for i := range effects {
		for _, r := range effects[i].rows {
			switch r.Reason {
			case string(compare.TooFewRepeats):
				most = max(most, r.Needs)
			case string(compare.TooManyInconclusive), experiment.NotMeasured:
			default:
				return 0
			}
		}
	}
	return most
}

// sinceEarlier is what has regressed since the earlier run.
func (s *subject) sinceEarlier() report.Prose {
	var worse []*comparisons.Comparison
	for i := range s.Earlier.Rows {
		r := &s.Earlier.Rows[i]
		if r.Verdict == string(v1alpha1.ComparisonRegressed) {
			worse = append(worse, r)
		}
	}
	switch n := len(worse); {
	case n == 0:
		return report.Text("Nothing is known to have regressed since " + s.Earlier.Run + ".")
	case n == 1:
		return report.Prose{}.Strong(worse[0].Cell).Add(" has ").Damage("regressed").
			Add(": " + worse[0].Message + ".")
	default:
		return report.Prose{}.Strong(wording.Plural(n, "figure")).Add(" have ").Damage("regressed").
			Add(" since " + s.Earlier.Run + ", such as " + worse[0].Cell + ": " + worse[0].Message + ".")
	}
}

// worst is about the first figure in which something is worse.
func (s *subject) worst(effects []effect, f compare.Figure) report.Prose {
	of := slices.DeleteFunc(slices.Clone(effects), func(e effect) bool {
		return e.figure.Name != f.Name
	})
	slices.SortStableFunc(of, func(a, b effect) int {
		return b.worse()*1000 - a.worse()*1000 +
			harm(&b) - harm(&a)
	})
	first := &of[0]
	p := report.Prose{}.Strong(s.Named(first.group)).Add(" ")
	verb, by := first.parts("Worse", "Regressed")
	p = p.Add(verb + " ").Damage(by).Add(first.inCells(first.worse()) + ".")
	worse := 0
	var rest []string
	for i := range of[1:] {
		e := &of[1+i]
		if e.worse() > 0 {
			worse++
			continue
		}
		if len(rest) < 2 {
			rest = append(rest, e.notWorse())
		}
	}
	if worse > 0 {
		p = p.Add(fmt.Sprintf(" %s worse, too.",
			map[bool]string{
				true:  "Another setting is",
				false: fmt.Sprintf("%d more settings are", worse),
			}[worse == 1]))
	}
	if len(rest) > 0 {
		p = p.Add(" " + strings.Join(rest, "; ") + ".")
	}
	return p
}

// harm is a hundredth of the greatest change.
func harm(e *effect) int {
	low, high := e.changes("Worse", "Regressed")
	if math.IsInf(low, 0) {
		return 0
	}
	return int(100 * min(max(math.Abs(low), math.Abs(high)), 9))
}

// notWorse is what is known of a group of which no cell is worse.
func (e *effect) notWorse() string {
	same, better, unknown := e.count("Same"), e.better(), e.count("Inconclusive")
	n := len(e.rows)
	margin := intervals.Margins(values(e.rows), e.figure)
	switch {
	case same == n:
		return fmt.Sprintf("%s is the same within %s", e.group, margin)
	case better == n:
		return e.group + " is better"
	case unknown == n:
		return e.group + " is inconclusive"
	}
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{{same, "the same"}, {better, "better"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s in %d", part.text, part.n))
		}
	}
	text := fmt.Sprintf("%s is %s of %s", e.group, wording.List(parts), wording.Plural(n, "cell"))
	if unknown > 0 {
		text += fmt.Sprintf(", and %d are inconclusive", unknown)
	}
	return text
}

func values(rows []*comparisons.Comparison) (all []comparisons.Comparison) {
	for _, r := range rows {
		all = append(all, *r)
	}
	return all
}

// inCells is in how many cells something is so; "" = in all.
func (e *effect) inCells(n int) string {
	if n == len(e.rows) {
		return ""
	}
	return fmt.Sprintf(" in %d of %s", n, wording.Plural(len(e.rows), "cell"))
}

// verb is what a group does to a figure, in a sentence; where says in which cells.
func (e *effect) verb(where string, verdicts ...string) string {
	verb, by := e.parts(verdicts...)
	return verb + " " + by + where
}

// parts are what a group does to a figure, and by how much.
func (e *effect) parts(verdicts ...string) (verb, by string) {
	low, high := e.changes(verdicts...)
	least := ""
	if slices.ContainsFunc(e.rows, func(r *comparisons.Comparison) bool {
		return r.Bound == "AtLeast"
	}) {
		least = "at least "
	}
	what := wording.Of(e.figure.Name).InText
	if math.IsInf(low, 0) || math.IsNaN(low) {
		return "changes", what
	}
	switch {
	case low >= math.Log(2): // both more than doubled
		return "multiplies " + what + " by", least +
			rangeOf(wording.Times(roundTwo(math.Exp(low))), wording.Times(roundTwo(math.Exp(high))), "")
	case low >= 0:
		return "raises " + what + " by", least +
			rangeOf(whole(math.Expm1(low)), whole(math.Expm1(high)), wording.NBSP+"%")
	case high <= 0:
		return "lowers " + what + " by", rangeOf(whole(-math.Expm1(high)), whole(-math.Expm1(low)),
			wording.NBSP+"%")
	}
	return "changes " + what + " by", wording.Bare(math.Expm1(low)) + " to " +
		wording.Bare(math.Expm1(high)) + wording.NBSP + "%"
}

func roundTwo(x float64) float64 {
	scale := math.Pow10(1 - int(math.Floor(math.Log10(x))))
	return math.Round(x*scale) / scale
}

// whole is a share in percent without its unit.
func whole(x float64) string {
	if 100*x < 9.95 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*x), ".0")
	}
	return fmt.Sprintf("%.0f", 100*x)
}

func rangeOf(low, high, unit string) string {
	if low == high {
		return low + unit
	}
	return low + " to " + high + unit
}

// tally counts the verdicts, in a sentence.
func tally(rows []comparisons.Comparison) string {
	counts := map[string]int{}
	all := 0
	for i := range rows {
		r := &rows[i]
		if r.Primary && !compare.FigureNamed(r.Figure).Counted {
			counts[r.Verdict]++
			all++
		}
	}
	var parts []string
	for _, of := range []struct{ verdict, text string }{
		{"Worse", "worse"},
		{"Regressed", "regressed"},
		{"Better", "better"},
		{"Improved", "improved"},
		{"Same", "the same"},
	} {
		if n := counts[of.verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, of.text))
		}
	}
	text := "none shows a difference"
	if len(parts) > 0 {
		first, rest, _ := strings.Cut(wording.List(parts), " ")
		text = first + " " + isAre(first) + " " + rest
	}
	if n := counts["Inconclusive"]; n > 0 {
		text += fmt.Sprintf(", and %d %s inconclusive", n, isAre(strconv.Itoa(n)))
	}
	return fmt.Sprintf("Of %s %s.", wording.Plural(all, "comparison"), text)
}

func isAre(n string) string {
	if n == "1" {
		return "is"
	}
	return "are"
}

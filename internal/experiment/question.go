package experiment

import (
	"fmt"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
)

// Question is what an experiment compares, as planned: before the first run.
func (p *Plan) Question(spec *v1alpha1.ExperimentComparison) Question {
	q := Question{Primary: p.primary(), Margins: map[string]compare.Margin{}}
	if len(spec.Figures) > 0 {
		q.Primary = nil
		for _, name := range spec.Figures {
			q.Primary = append(q.Primary, figureNamed(string(name)))
		}
	}
	for name, margin := range spec.Margins {
		q.Margins[name] = compare.Margin{Relative: margin.Share()}
	}
	q.Design = &compare.Design{
		Cells:        len(p.Variants),
		RunsPerRound: p.runsPerRound(),
		Baseline:     p.BaselineRepeats,
		Comparisons:  p.Compared() * len(q.Primary),
	}
	return q
}

// Warnings are what will keep a figure from being told, or will disturb it.
func (p *Plan) Warnings(q Question) []string {
	var warnings []string
	add := func(format string, words ...any) {
		warnings = append(warnings, fmt.Sprintf(format, words...))
	}
	for _, f := range q.Primary {
		switch needs := q.Design.RepeatsNeeded(f, false); {
		case needs == 0:
			add(
				"spec.compare: no number of repeats tells %s with %d comparisons: compare fewer figures or cells",
				f.Name, q.Design.Comparisons)
		case p.Repeat < needs:
			add("spec.repeat: %d is too few for %s with %d comparisons: it needs %d", p.Repeat, f.Name,
				q.Design.Comparisons, needs)
		case f.Name == compare.RecoveryTime.Name && p.Repeat < q.Design.RepeatsNeeded(f, true):
			add("spec.repeat: if a run does not recover, %d is too few for %s: it then needs %d",
				p.Repeat, f.Name, q.Design.RepeatsNeeded(f, true))
		}
	}
	if !p.Shuffled {
		add(
			"spec.order: Sequential: a drift of the environment during a round shows as a difference between cells")
	}
	return warnings
}

// Compared is how many cells are compared with a baseline.
func (p *Plan) Compared() int {
	n := 0
	for i, v := range p.Variants {
		if v.Baseline != i {
			n++
		}
	}
	return n
}

// BaselineOf is the name of the cell that one is compared with.
func (p *Plan) BaselineOf(cell int) string {
	return p.Variants[p.Variants[cell].Baseline].Name
}

// Names are those of the cells, in the order of the matrix.
func (p *Plan) Names() []string {
	var names []string
	for _, v := range p.Variants {
		names = append(names, v.Name)
	}
	return names
}

func figureNamed(name string) compare.Figure {
	all := compare.Figures()
	return all[slices.IndexFunc(all, func(f compare.Figure) bool { return f.Name == name })]
}

// primary are the figures that are compared unless others are named: those that every run will
// have.
func (p *Plan) primary() []compare.Figure {
	all := func(of func(*Variant) bool) bool {
		return !slices.ContainsFunc(p.Variants, func(v Variant) bool { return !of(&v) })
	}
	none := func(of func(*Variant) bool) bool {
		return !slices.ContainsFunc(p.Variants, func(v Variant) bool { return of(&v) })
	}
	faults := func(v *Variant) bool { return len(v.Faults) > 0 }
	open := func(v *Variant) bool { return isOpen(&v.Load.Load) }
	var figures []compare.Figure
	switch {
	case all(faults):
		figures = []compare.Figure{compare.Outage, compare.RecoveryTime}
	case !none(faults):
		figures = []compare.Figure{compare.Outage, compare.ErrorRate}
	case none(open):
		figures = []compare.Figure{compare.Throughput, compare.LatencyP99}
	case all(open):
		figures = []compare.Figure{compare.ErrorRate, compare.LatencyP99}
	default: // their latencies are different figures
		figures = []compare.Figure{compare.ErrorRate}
	}
	if all(func(v *Variant) bool { return v.Load.Verify != nil && v.Load.Verify.AcknowledgedWrites }) {
		figures = append(figures, compare.LostWrites)
	}
	if all(func(v *Variant) bool { return v.Load.Workload.Lock != nil }) {
		figures = append(figures, compare.LockOverlaps)
	}
	return figures
}

// isOpen reports whether a load has fixed arrival times.
func isOpen(load *v1alpha1.LoadShape) bool {
	return load.Rate != nil || load.Search != nil ||
		slices.ContainsFunc(load.Stages, func(s v1alpha1.LoadStage) bool { return s.Rate != nil })
}

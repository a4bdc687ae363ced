package repeats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
)

// Phases is the parts of the recovery; nil if the phases of no run are known.
func Phases(s *study.Study) (*report.Section, error) {
	p := phases(s)
	if p == nil {
		return nil, nil
	}
	html, err := drawings.Draw("phases", p)
	if err != nil {
		return nil, err
	}
	return &report.Section{
		ID:      "phases",
		Title:   "Where the recovery went",
		Finding: phasesFinding(s),
		Drawing: html,
		Tables:  []report.Table{phasesTable(s)},
	}, nil
}

// phasesDrawing is the recovery of each cell's median run, divided into its phases.
type phasesDrawing struct {
	Rows   []phaseRow
	Heads  []phaseSegment // above the first row
	Labels int            // the width of the heads of the rows, in pixels
	Ticks  []plot.Tick
}

type phaseRow struct {
	First    bool
	Group    string
	Of       string
	Segments []phaseSegment
	Total    string
	End      plot.Place
	Label    string
}

type phaseSegment struct {
	Left, Width plot.Place
	Owner       report.Owner
	Text        string // inside, where it fits
	Title       string
	Name        string
	Hidden      bool
}

// medianRun is the conclusive run of a cell whose recovery is the median, of those whose phases are
// known; nil = there is none.
func medianRun(s *study.Study, cell int) *study.Run {
	var runs []*study.Run
	for _, run := range s.RunsOf(cell) {
		if run.Inconclusive == "" && run.Detail != nil && len(run.Detail.Phases) > 0 {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return nil
	}
	recovery := func(r *study.Run) float64 { return r.Values[compare.RecoveryTime.Name].Value }
	slices.SortStableFunc(runs, func(a, b *study.Run) int {
		return cmp.Compare(recovery(a),
			recovery(b))
	})
	return runs[(len(runs)-1)/2]
}

// phases draws the median runs; nil if the phases of none are known.
func phases(s *study.Study) *phasesDrawing {
	longest := time.Duration(0)
	runs := make([]*study.Run, len(s.Cells))
	for i := range s.Cells {
		if runs[i] = medianRun(s, i); runs[i] != nil {
			longest = max(longest, totalOf(runs[i].Detail.Phases))
		}
	}
	if longest == 0 {
		return nil
	}
	scale := lengthScale{longest.Seconds() * 1.13}
	d := &phasesDrawing{Labels: labelWidth(s)}
	last := ""
	for n, cell := range s.ByGroup() {
		group, matched := s.GroupOf(cell)
		row := phaseRow{Of: group}
		if n == 0 || matched != last {
			row.First, row.Group = true, matched
		}
		last = matched
		row.set(runs[cell], s.Cells[cell].Name, scale)
		if d.Heads == nil && len(row.Segments) > 0 {
			d.Heads = headsOf(row.Segments)
		}
		d.Rows = append(d.Rows, row)
	}
	for _, x := range scale.steps() {
		t := plot.Tick{
			At:   scale.of(x),
			Text: "+" + report.Duration(time.Duration(math.Round(x*float64(time.Second)))),
		}
		if x == 0 {
			t.Text, t.Class = s.FaultWord(), "z"
		}
		d.Ticks = append(d.Ticks, t)
	}
	return d
}

func totalOf(phases []result.Phase) (total time.Duration) {
	for i := range phases {
		total += time.Duration(phases[i].Took.Value)
	}
	return total
}

func ownerOf(p *result.Phase) report.Owner {
	return events.OwnerOf(p.Name, v1alpha1.PhaseSource(p.Source))
}

func (row *phaseRow) set(run *study.Run, cell string, scale lengthScale) {
	if run == nil {
		row.Total = "not known"
		row.End = plot.At(0)
		row.Label = cell + ": the phases of no run are known"
		return
	}
	from := time.Duration(0)
	for i := range run.Detail.Phases {
		p := &run.Detail.Phases[i]
		length := time.Duration(p.Took.Value)
		share := 100 * length.Seconds() / scale.most
		owner := ownerOf(p)
		seg := phaseSegment{
			Left:  scale.of(from.Seconds()),
			Width: plot.At(share),
			Owner: owner,
			Name:  p.Name,
			Title: fmt.Sprintf("until %s: %s, %s", p.Name, report.Duration(length), owner),
		}
		if share > 9 {
			seg.Text = report.Duration(length)
		}
		row.Segments = append(row.Segments, seg)
		row.Label += fmt.Sprintf("; %s %s", p.Name, report.Duration(length))
		from += length
	}
	row.Total, row.End = report.Duration(from), scale.of(from.Seconds())
	row.Label = fmt.Sprintf("%s, run %d: %s%s", cell, run.Number, row.Total, row.Label)
}

// headsOf names the phases that are wide enough; the others are named to those who do not see the
// drawing.
func headsOf(segments []phaseSegment) []phaseSegment {
	var heads []phaseSegment
	for _, s := range segments {
		s.Hidden = s.Text == ""
		heads = append(heads, s)
	}
	return heads
}

// phasesTable is the phases of the median runs.
func phasesTable(s *study.Study) report.Table {
	t := report.Table{
		Drawn:   true,
		Caption: "Phases of the median run of each cell",
		Columns: []report.Column{
			{Title: "Cell"},
			{Title: "Run", Number: true},
			{Title: "Phase"},
			{Title: "Owner"},
			{Title: "Length", Number: true},
		},
	}
	for i := range s.Cells {
		run := medianRun(s, i)
		if run == nil {
			continue
		}
		for k := range run.Detail.Phases {
			p := &run.Detail.Phases[k]
			owner := ownerOf(p)
			length := p.Took.Value.Seconds()
			t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{
				{Text: s.Cells[i].Name},
				{Text: report.Count(run.Number)},
				{Text: p.Name},
				{Text: string(owner), Owner: owner},
				{Text: report.Duration(time.Duration(p.Took.Value)), Value: &length, Unit: result.UnitSeconds},
			}})
		}
	}
	return t
}

// phasesFinding names who the most of the time belongs to, and where its share differs most.
func phasesFinding(s *study.Study) report.Prose {
	byOwner := map[report.Owner]time.Duration{}
	total := time.Duration(0)
	known := 0
	for i := range s.Cells {
		run := medianRun(s, i)
		if run == nil {
			continue
		}
		known++
		for k := range run.Detail.Phases {
			p := &run.Detail.Phases[k]
			byOwner[ownerOf(p)] += time.Duration(p.Took.Value)
			total += time.Duration(p.Took.Value)
		}
	}
	p := report.Text("The run with the median recovery of each cell, taken apart: ")
	for i, o := range []report.Owner{
		report.ByFault, report.Kubernetes, report.Redis, report.Client, report.Nobody,
	} {
		if byOwner[o] == 0 {
			continue
		}
		if i > 0 && len(p) > 1 {
			p = p.Add(", ")
		}
		p = p.By(o, events.OwnerName(o)).Add(" " +
			wording.Percent(math.Round(100*byOwner[o].Seconds()/total.Seconds())/100))
	}
	p = p.Add(" of the time of all of them.")
	if known < len(s.Cells) {
		p = p.Add(
			fmt.Sprintf(
				" Of %s the phases are not known: their objects are gone, or nothing had to recover.",
				wording.Plural(len(s.Cells)-known, "cell")))
	}
	return p
}

package intervals

import (
	"math"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// ratioScale places logarithms of ratios so that both 2 % and 70 % can be read: linear around 0,
// logarithmic far from it. To the right is better.
type ratioScale struct{ most float64 } // the logarithm at the ends

// linear is around which logarithm the scale changes from linear to logarithmic.
const linear = 0.05

// newRatioScale reaches as far as the changes, at least to five times.
func newRatioScale(rows []comparisons.Comparison) ratioScale {
	s := ratioScale{math.Log(5)}
	reach := func(x *float64) {
		if x != nil && *x > -1 {
			s.most = max(s.most, math.Abs(math.Log1p(*x))*1.05)
		}
	}
	for i := range rows {
		if compare.FigureNamed(rows[i].Figure).Counted || !rows[i].Primary {
			continue
		}
		reach(rows[i].Change)
		joint := rows[i].IntervalJoint
		if joint != nil && rows[i].Change != nil {
			reach(joint.AtLeast)
			reach(joint.AtMost)
		}
	}
	s.most = min(s.most, math.Log(1e6))
	return s
}

// of is where a logarithm of a ratio stands, from 0 to 100.
func (s ratioScale) of(log float64, f compare.Figure) float64 {
	if !f.HigherIsBetter {
		log = -log
	}
	x := 50 + 50*math.Asinh(log/linear)/math.Asinh(s.most/linear)
	return min(max(x, 0), 100)
}

// bar is a comparison as it is drawn.
type bar struct {
	Class            string
	Margin           plot.Place // to the margin from both ends; "" = none
	Thin, Thick      span       // the joint interval, and that of 90 %
	Point            plot.Place // "" = the change is not known
	Label            string
	Word             wording.Verdict
	Change, Interval string
	Small            string // about the repeats that would tell
	Figure, NotDrawn string
}

// span is a part of a drawing, in percent.
type span struct{ Left, Width plot.Place }

func (s ratioScale) span(i *comparisons.Interval, f compare.Figure) span {
	if i == nil {
		return span{}
	}
	low, high := -s.most, s.most // infinite ones reach to the ends
	if i.AtLeast != nil && *i.AtLeast > -1 {
		low = math.Log1p(*i.AtLeast)
	}
	if i.AtMost != nil {
		high = math.Log1p(*i.AtMost)
	}
	a, b := s.of(low, f), s.of(high, f)
	return span{plot.At(min(a, b)), plot.At(math.Abs(b - a))}
}

// ticks of the axis of a figure: 5 and 20 %, and one far out on each side.
func (s ratioScale) ticks(f compare.Figure) []plot.Tick {
	var list []plot.Tick
	add := func(ratio float64, class string) {
		x := s.of(math.Log(ratio), f)
		switch {
		case x < 4:
			x, class = 0, class+" l"
		case x > 96:
			x, class = 100, class+" r"
		}
		list = append(list, plot.Tick{
			At:    plot.At(x),
			Text:  strings.TrimSuffix(wording.Bare(ratio-1), ".0"),
			Class: class,
		})
	}
	far := 4.
	for _, ratio := range []float64{10, 100, 1000, 1e4, 1e5} {
		if math.Log(ratio) < s.most {
			far = ratio
		}
	}
	add(1/far, "e")
	add(1/1.25, "w")
	add(0.95, "")
	add(1, "")
	add(1.05, "")
	add(1.25, "w")
	add(far, "e")
	return list
}

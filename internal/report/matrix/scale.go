package matrix

import (
	"math"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/result"
)

// place is a position in percent of a drawing, as styles take it.
type place string

func at(percent float64) place {
	return place(strconv.FormatFloat(math.Round(percent*100)/100, 'f', -1, 64))
}

// ratioScale places logarithms of ratios so that both 2 % and 70 % can be read: linear around 0, logarithmic far from it. To the right is better.
type ratioScale struct{ most float64 } // the logarithm at the ends

// linear is around which logarithm the scale changes from linear to logarithmic.
const linear = 0.05

// newRatioScale reaches as far as the changes, at least to five times.
func newRatioScale(rows []result.Comparison) ratioScale {
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
		if joint := rows[i].IntervalJoint; joint != nil && rows[i].Change != nil {
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
	Margin           place // to the margin from both ends; "" = none
	Thin, Thick      span  // the joint interval, and that of 90 %
	Point            place // "" = the change is not known
	Label            string
	Word             word
	Change, Interval string
	Small            string // about the repeats that would tell
	Figure, NotDrawn string
}

// span is a part of a drawing, in percent.
type span struct{ Left, Width place }

func (s ratioScale) span(i *result.Interval, f compare.Figure) span {
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
	return span{at(min(a, b)), at(math.Abs(b - a))}
}

// tick is a mark of an axis.
type tick struct {
	At    place
	Text  string
	Class string
}

// ticks of the axis of a figure: 5 and 20 %, and one far out on each side.
func (s ratioScale) ticks(f compare.Figure) []tick {
	var list []tick
	add := func(ratio float64, class string) {
		x := s.of(math.Log(ratio), f)
		switch {
		case x < 4:
			x, class = 0, class+" l"
		case x > 96:
			x, class = 100, class+" r"
		}
		list = append(list, tick{at(x), strings.TrimSuffix(bare(ratio-1), ".0"), class})
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

// lengthScale places values from 0 to a round number above the greatest one.
type lengthScale struct{ most float64 }

func newLengthScale(greatest float64) lengthScale {
	if greatest <= 0 || math.IsInf(greatest, 0) || math.IsNaN(greatest) {
		return lengthScale{1}
	}
	return lengthScale{greatest * 1.06}
}

func (s lengthScale) of(x float64) place { return at(100 * min(max(x/s.most, 0), 1)) }

// steps are some three to five round numbers within the scale, from 0.
func (s lengthScale) steps() (list []float64) {
	step := math.Pow10(int(math.Floor(math.Log10(s.most / 2))))
	for _, by := range []float64{1, 2, 5, 10} {
		if s.most/(step*by) <= 5 {
			step *= by
			break
		}
	}
	for i := 0; float64(i)*step <= s.most; i++ {
		list = append(list, float64(i)*step)
	}
	return list
}

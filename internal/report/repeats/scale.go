package repeats

import (
	"math"

	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/study"
)

// widestHead is how wide the heads of rows may be, in pixels: longer ones are cut off.
const widestHead = 220

func labelWidth(s *study.Study) int {
	longest := 0
	for i := range s.Cells {
		group, matched := s.GroupOf(i)
		longest = max(longest, len([]rune(group))+len([]rune(matched)))
	}
	return plot.HeadWidth(longest, 26, widestHead)
}

// lengthScale places values from 0 to a round number above the greatest one.
type lengthScale struct{ most float64 }

func newLengthScale(greatest float64) lengthScale {
	if greatest <= 0 || math.IsInf(greatest, 0) || math.IsNaN(greatest) {
		return lengthScale{1}
	}
	return lengthScale{greatest * 1.06}
}

func (s lengthScale) of(x float64) plot.Place {
	return plot.At(100 * min(max(x/s.most, 0), 1))
}

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

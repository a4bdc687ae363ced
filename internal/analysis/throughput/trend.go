package throughput

import (
	"math"

	"github.com/redquake/redquake/internal/record/merged"
)

var blocks = []rune("▁▂▃▄▅▆▇█")

// Trend draws the throughput of the complete record in at most width cells, each an equal part of
// the run and at least a second. A cell shows the lowest rate of any 1 s window in it, so that an
// outage of a second is visible in a run of any length. The highest cell is '█', the others are in
// proportion, rounded; '▁' is from 0 to 1/14 of it.
func Trend(s *merged.Series, width int) string {
	c := CurveOf(s)
	cells := min(width, c.N/c.Wide)
	if cells <= 0 {
		return ""
	}
	lowest := make([]float64, cells)
	highest := 0.0
	for k := range lowest {
		first, end := k*c.N/cells, (k+1)*c.N/cells
		lowest[k] = c.WindowRate(first)
		for i := first + 1; i+c.Wide <= end; i++ {
			lowest[k] = min(lowest[k], c.WindowRate(i))
		}
		highest = max(highest, lowest[k])
	}
	drawn := make([]rune, cells)
	for k, rate := range lowest {
		level := 0
		if highest > 0 {
			level = int(math.Round(rate / highest * float64(len(blocks)-1)))
		}
		drawn[k] = blocks[level]
	}
	return string(drawn)
}

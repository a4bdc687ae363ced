package live

import (
	"math"
	"strings"
	"time"
)

// blocks are the eighths of a cell.
var blocks = []rune(" ▁▂▃▄▅▆▇█")

// axis maps the time of a load to the columns of a chart.
type axis struct {
	columns int
	each    time.Duration // of a column
}

// axisOf is an axis that holds a time, in steps of whole seconds.
func axisOf(end time.Duration, columns int) axis {
	seconds := math.Ceil(end.Seconds() / float64(columns))
	return axis{columns, time.Duration(max(1, seconds)) * time.Second}
}

// column of an instant; -1 if it is outside.
func (a axis) column(at time.Duration) int {
	if at < 0 || at >= a.each*time.Duration(a.columns) {
		return -1
	}
	return int(at / a.each)
}

// values are a figure of the rows in each column: the worst, so that a dip of a second shows in a
// run of hours. NaN = there is none.
func (a axis) values(
	course *Course, figure func(Row) float64, worst func(a, b float64) float64,
) []float64 {
	out := make([]float64, a.columns)
	for i := range out {
		out[i] = math.NaN()
	}
	if course == nil {
		return out
	}
	for _, r := range course.Rows {
		value := figure(r)
		if math.IsNaN(value) {
			continue
		}
		for c := a.column(r.At); c >= 0 && c < a.columns && a.each*time.Duration(c) < r.Until; c++ {
			if math.IsNaN(out[c]) {
				out[c] = value
			} else {
				out[c] = worst(out[c], value)
			}
		}
	}
	return out
}

// chart draws values as an area of blocks, from 0 to the highest, the top line first. A value above
// 0 shows at least an eighth; one of 0 shows nothing.
func chart(values []float64, height int) (lines []string, top float64) {
	for _, v := range values {
		if !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	eighths := make([]int, len(values))
	for i, v := range values {
		if top > 0 && v > 0 {
			eighths[i] = max(1, int(math.Round(v/top*float64(8*height))))
		}
	}
	for line := height - 1; line >= 0; line-- {
		var b strings.Builder
		for _, n := range eighths {
			b.WriteRune(blocks[min(8, max(0, n-8*line))])
		}
		lines = append(lines, b.String())
	}
	return lines, top
}

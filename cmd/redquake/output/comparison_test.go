package output

import (
	"io"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// A change whose sign is not that of the medians beside it is explained below the table.
func TestOpposedMedians(t *testing.T) {
	row := comparisons.Comparison{
		Cell: "after", Baseline: "before", Figure: "throughput", Unit: result.UnitPerSecond, Median: new(61269.5),
		BaselineMedian: new(64416.5), Change: new(0.0026),
	}
	agree := row
	agree.Change = new(-0.05)
	for want, c := range map[bool]*comparisons.Comparisons{
		true:  {Baseline: "before", Comparisons: []comparisons.Comparison{row}},
		false: {Baseline: "before", Comparisons: []comparisons.Comparison{agree}},
	} {
		for name, write := range map[string]func(io.Writer, *comparisons.Comparisons) error{
			"text":     WriteComparisons,
			"Markdown": WriteComparisonsMarkdown,
		} {
			var b strings.Builder
			if err := write(&b, c); err != nil {
				t.Fatal(err)
			}
			if has := strings.Contains(b.String(), "the medians of all runs point the other way"); has != want {
				t.Errorf("%s, opposed %v:\n%s", name, want, b.String())
			}
		}
	}
}

package output

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// trials writes the table of trials.
func trials(b *strings.Builder, s *result.Search) {
	var t table
	t.row("TRIAL", "RATE", "OK/S", "P50", "P99", "ERRORS", "OBJECTIVES")
	for i, one := range s.Trials {
		p50, p99 := "-", "-"
		if one.Latency != nil {
			p50, p99 = seconds(one.Latency.P50), seconds(one.Latency.P99)
		}
		result := "met"
		if !one.Met {
			result = "missed: " + one.Missed
		}
		t.row(fmt.Sprint(i+1), format.Rate(one.Rate), format.Rate(one.Throughput), p50, p99, format.Share(one.ErrorRate), result)
	}
	b.WriteString(t.String())
}

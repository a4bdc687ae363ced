//go:build integration

package accuracy

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// tableOf formats a line per experiment, with lengths in milliseconds.
func tableOf(all []outage) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "case\toutages\twithin\tbeyond by\terror median\tp95\twidth median\tp95\tdoubted\t")
	for len(all) > 0 {
		n := 0
		for n < len(all) && all[n].Case == all[0].Case {
			n++
		}
		writeRow(w, all[:n])
		all = all[n:]
	}
	_ = w.Flush()
	return text.String()
}

func writeRow(w *tabwriter.Writer, list []outage) {
	var errors, widths []float64
	within, doubted, beyond := 0, 0, 0.0
	for i := range list {
		o := &list[i]
		if o.within() {
			within++
		}
		beyond = max(beyond, o.AtLeast-o.Truth, o.Truth-o.AtMost)
		if o.Doubt != "" {
			doubted++
		}
		errors = append(errors, max(o.Measured-o.Truth, o.Truth-o.Measured))
		widths = append(widths, o.AtMost-o.AtLeast)
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t\n", list[0].Case, len(list), within, 1000*beyond,
		1000*quantile(errors, 0.5), 1000*quantile(errors, 0.95), 1000*quantile(widths, 0.5), 1000*quantile(widths, 0.95),
		doubted)
}

func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

package output

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/doctor"
)

// WriteDoctor writes what is ready in a cluster as two tables: of the checks, and of the kinds of
// faults.
func WriteDoctor(w io.Writer, r *doctor.Report) error {
	checks := [][]string{{"CHECK", "STATUS", "DETAIL"}}
	for _, c := range r.Checks {
		checks = append(checks, []string{c.Name, string(c.Status), c.Detail})
	}
	faults := [][]string{{"FAULT", "STATUS", "DETAIL"}}
	for _, f := range r.Faults {
		name := string(f.Type)
		if f.Engine != v1alpha1.EngineNative {
			name += " by " + string(f.Engine)
		}
		detail := strings.Join(f.Detail, "; ")
		if f.Status == doctor.OK && len(f.Needs) > 0 {
			detail = "needs: " + strings.Join(f.Needs, ", ")
		}
		faults = append(faults, []string{name, string(f.Status), detail})
	}
	var b strings.Builder
	for _, rows := range [][][]string{checks, faults} {
		out := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(out, strings.Join(row, "\t"))
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("write the checks: %w", err)
		}
		b.WriteString("\n")
	}
	ready := "Ready: load tests can run in namespace " + r.Namespace
	if !r.Ready {
		ready = "Not ready: see what is Missing above"
	}
	b.WriteString(ready + "\n")
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return fmt.Errorf("write the checks: %w", err)
		}
	}
	return nil
}

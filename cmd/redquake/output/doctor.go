package output

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/doctor"
)

// WriteDoctor writes what is ready in a cluster as two tables: of the checks, and of the kinds of faults.
func WriteDoctor(w io.Writer, r *doctor.Report) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "CHECK\tSTATUS\tDETAIL")
	for _, c := range r.Checks {
		fmt.Fprintf(out, "%s\t%s\t%s\n", c.Name, c.Status, c.Detail)
	}
	fmt.Fprintln(out, "\t\t")
	fmt.Fprintln(out, "FAULT\tSTATUS\tDETAIL")
	for _, f := range r.Faults {
		name := string(f.Type)
		if f.Engine != v1alpha1.EngineNative {
			name += " by " + string(f.Engine)
		}
		detail := strings.Join(f.Detail, "; ")
		if f.Status == doctor.OK && len(f.Needs) > 0 {
			detail = "needs: " + strings.Join(f.Needs, ", ")
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", name, f.Status, detail)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the checks: %w", err)
	}
	ready := "Ready: load tests can run in namespace " + r.Namespace
	if !r.Ready {
		ready = "Not ready: see what is Missing above"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", ready)
	return err
}

package follow

import (
	"context"
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/internal/reports"
	"github.com/redquake/redquake/cmd/redquake/internal/written"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/live"
	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/report"
)

// openRunReport opens the file of the report before anything is created. A report is of one load
// test with its faults, of one fault with a load of its own, or of one experiment.
func openRunReport(path string, all []*written.Object) (*output.File, error) {
	if path == "" {
		return nil, nil
	}
	if _, err := output.FormOf(path); err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	tests, faults, experiments := 0, 0, 0
	for _, w := range all {
		switch {
		case w.Kind == kube.LoadTest:
			tests++
		case w.Kind == kube.Experiment:
			experiments++
		case w.Kind == kube.Fault && loadTestRef(w.Content) == "":
			faults++
		}
	}
	ofLoad := experiments == 0 && (tests == 1 || tests == 0 && faults == 1)
	ofExperiment := experiments == 1 && tests == 0 && faults == 0
	if !ofLoad && !ofExperiment {
		return nil, fmt.Errorf(
			"--report: is of one load test, of one fault with a load of its own, or of one experiment; "+
				"there are %d load tests, %d such faults and %d experiments: "+
				"leave it out, and write the reports by `redquake report` afterwards", tests, faults,
			experiments)
	}
	return output.Open("--report", path)
}

// writeReport writes the report of objects that are over.
func writeReport(
	ctx context.Context, from *cluster.Flags, to *output.File, objects []*kube.Object,
) error {
	if to == nil { // the report would be read in vain
		return nil
	}
	document, err := documentOf(ctx, from, objects)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return to.WriteReport(document)
}

// documentOf makes the report of the experiment or the load test among objects, or of the fault
// with a load of its own.
func documentOf(
	ctx context.Context, from *cluster.Flags, objects []*kube.Object,
) (*report.Document, error) {
	var alone *v1alpha1.RedisFault
	for _, o := range objects {
		switch {
		case o.Experiment != nil:
			return reports.OfExperiment(ctx, from, o.Experiment.Name)
		case o.Test != nil:
			return reports.OfLoadTest(ctx, from, o.Test.Name)
		case o.Fault != nil && o.Fault.Spec.LoadTestRef == nil:
			alone = o.Fault
		}
	}
	return reports.OfFault(ctx, from, live.LoadOf(alone), alone.Name)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/cmd/redquake/live"
	runreport "github.com/redquake/redquake/internal/report/run"
)

// openRunReport opens the file of the report before anything is created. A report is of one load test.
func openRunReport(path string, all []*written) (*outputFile, error) {
	if path == "" {
		return nil, nil
	}
	if _, err := formOf(path); err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	tests, faults := 0, 0
	for _, w := range all {
		switch {
		case w.kind == kube.LoadTest:
			tests++
		case w.kind == kube.Fault && loadTestRef(w.object) == "":
			faults++
		}
	}
	if tests > 1 || tests == 0 && faults != 1 {
		return nil, errors.New("--report: is of one load test, or of one fault with a load of its own: write the others by `redquake report` afterwards")
	}
	return openOutput("--report", path)
}

// writeReport writes the report of the load test among objects, or of the load of a fault.
func (f *clusterFlags) writeReport(ctx context.Context, to *outputFile, objects []*kube.Object) error {
	if to == nil {
		return nil
	}
	test, fault := "", ""
	for _, o := range objects {
		if o.Test != nil {
			test, fault = o.Test.Name, ""
			break
		}
		if o.Fault != nil && o.Fault.Spec.LoadTestRef == nil {
			test, fault = live.LoadOf(o.Fault), o.Fault.Name
		}
	}
	in, err := (&reportFlags{cluster: *f}).fromCluster(ctx, test)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	document := runreport.LoadTest(*in)
	if fault != "" {
		if document, err = runreport.Fault(*in, fault); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	form, err := formOf(to.Name())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeReport(&b, form, document); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return to.write(b.Bytes())
}

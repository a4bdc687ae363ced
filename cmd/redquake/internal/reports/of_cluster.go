package reports

import (
	"context"

	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
)

// OfLoadTest makes the report of a load test of the cluster with its faults, and its record, if it
// is stored.
func OfLoadTest(ctx context.Context, from *cluster.Flags, name string) (*report.Document, error) {
	in, err := fromCluster(ctx, from, name)
	if err != nil {
		return nil, err
	}
	return run.LoadTest(*in), nil
}

// OfFault makes the report of a fault of the cluster on a load test; "" = that which the fault's
// status names.
func OfFault(
	ctx context.Context, from *cluster.Flags, test, fault string,
) (*report.Document, error) {
	if test == "" {
		found, err := from.LoadTestOf(ctx, fault)
		if err != nil {
			return nil, err
		}
		test = found
	}
	in, err := fromCluster(ctx, from, test)
	if err != nil {
		return nil, err
	}
	return run.Fault(*in, fault)
}

// OfExperiment makes the report of an experiment of the cluster.
func OfExperiment(ctx context.Context, from *cluster.Flags, name string) (*report.Document, error) {
	saved, err := from.ReadExperimentRuns(ctx, name)
	if err != nil {
		return nil, err
	}
	return documentOfExperiment(saved)
}

// fromCluster reads a load test, the faults of its namespace, and its record, if it is stored.
func fromCluster(ctx context.Context, from *cluster.Flags, test string) (*subject.Input, error) {
	saved, err := from.ReadRun(ctx, test)
	if err != nil {
		return nil, err
	}
	in := &subject.Input{Name: test}
	return in, saved.Fill(in)
}

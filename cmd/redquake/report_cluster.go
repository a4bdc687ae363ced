package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
)

// reportOfLoadTest makes the report of a load test of the cluster with its faults, and its record, if it is stored.
func reportOfLoadTest(ctx context.Context, cluster *clusterFlags, name string) (*report.Document, error) {
	in, err := fromCluster(ctx, cluster, name)
	if err != nil {
		return nil, err
	}
	return run.LoadTest(*in), nil
}

// reportOfFault makes the report of a fault of the cluster on a load test; "" = that which the fault's status names.
func reportOfFault(ctx context.Context, cluster *clusterFlags, test, fault string) (*report.Document, error) {
	if test == "" {
		found, err := cluster.loadTestOf(ctx, fault)
		if err != nil {
			return nil, err
		}
		test = found
	}
	in, err := fromCluster(ctx, cluster, test)
	if err != nil {
		return nil, err
	}
	return run.Fault(*in, fault)
}

// reportOfExperiment makes the report of an experiment of the cluster.
func reportOfExperiment(ctx context.Context, cluster *clusterFlags, name string) (*report.Document, error) {
	saved, err := cluster.readExperimentObjects(ctx, name)
	if err != nil {
		return nil, err
	}
	return documentOfExperiment(saved)
}

// fromCluster reads a load test, the faults of its namespace, and its record, if it is stored.
func fromCluster(ctx context.Context, cluster *clusterFlags, test string) (*run.Input, error) {
	saved, err := cluster.readObjects(ctx, test)
	if err != nil {
		return nil, err
	}
	in := &run.Input{Name: test}
	return in, saved.Fill(in)
}

// loadTestOf is the name of the load test that measured a fault.
func (f *clusterFlags) loadTestOf(ctx context.Context, fault string) (string, error) {
	c, err := f.connect()
	if err != nil {
		return "", err
	}
	object, err := c.Raw(ctx, fmt.Sprintf(faults, c.Namespace), fault)
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("there is no RedisFault %s in namespace %s", fault, c.Namespace)
	case err != nil:
		return "", fmt.Errorf("read RedisFault %s: %w", fault, err)
	}
	var found v1alpha1.RedisFault
	if err := json.Unmarshal(object, &found); err != nil {
		return "", fmt.Errorf("decode RedisFault %s: %w", fault, err)
	}
	if found.Status.LoadTest == "" {
		return "", fmt.Errorf("RedisFault %s of namespace %s has no load test yet", fault, c.Namespace)
	}
	return found.Status.LoadTest, nil
}

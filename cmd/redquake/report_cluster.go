package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report/run"
)

// fromCluster reads a load test, the faults of its namespace, and its record, if it is stored; without a name the load test of the fault.
func (f *reportFlags) fromCluster(ctx context.Context, test string) (*run.Input, error) {
	if test == "" {
		found, err := f.cluster.loadTestOf(ctx, f.fault)
		if err != nil {
			return nil, err
		}
		test = found
	}
	saved, err := f.cluster.readObjects(ctx, test)
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

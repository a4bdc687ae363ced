package main

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	runreport "github.com/redquake/redquake/internal/report/run"
)

// fromCluster reads a load test, the faults of its namespace, and its record, if it is stored; without a name the load test of the fault.
func (f *reportFlags) fromCluster(ctx context.Context, test string) (*runreport.Input, error) {
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
	c, namespace, err := f.cluster.connect()
	if err != nil {
		return nil, err
	}
	name := children.ResultsName(test)
	stored, err := c.Get().AbsPath(fmt.Sprintf(configMaps, namespace), name).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err): // not stored yet, or deleted
	case err != nil:
		return nil, fmt.Errorf("read the record of RedisLoadTest %s: %w", test, err)
	default:
		if err := saved.add(stored); err != nil {
			return nil, err
		}
	}
	in := &runreport.Input{Name: test}
	return in, saved.report(in)
}

// loadTestOf is the name of the load test that measured a fault.
func (f *clusterFlags) loadTestOf(ctx context.Context, fault string) (string, error) {
	c, namespace, err := f.connect()
	if err != nil {
		return "", err
	}
	object, err := c.Get().AbsPath(fmt.Sprintf(faults, namespace), fault).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("there is no RedisFault %s in namespace %s", fault, namespace)
	case err != nil:
		return "", fmt.Errorf("read RedisFault %s: %w", fault, err)
	}
	var found v1alpha1.RedisFault
	if err := json.Unmarshal(object, &found); err != nil {
		return "", fmt.Errorf("decode RedisFault %s: %w", fault, err)
	}
	if found.Status.LoadTest == "" {
		return "", fmt.Errorf("RedisFault %s of namespace %s has no load test yet", fault, namespace)
	}
	return found.Status.LoadTest, nil
}

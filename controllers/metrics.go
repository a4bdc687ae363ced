package controllers

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/runs"
)

// NewMetrics returns the metrics of a process with a clock and its runs, for the caller to
// register.
func NewMetrics(now func() time.Time, of *runs.Registry) *metrics.Metrics {
	return metrics.New(now, func() metrics.Sessions {
		used, limit := of.Memory.Used()
		return metrics.Sessions{
			Count:       of.Sessions(),
			RecordBytes: used,
			RecordLimit: limit,
		}
	})
}

// ObjectsIn reads the objects from a manager's cache, without copies of them.
func ObjectsIn(cache client.Reader) func(context.Context) (*metrics.Objects, error) {
	return func(ctx context.Context) (*metrics.Objects, error) {
		var (
			tests       v1alpha1.RedisLoadTestList
			faults      v1alpha1.RedisFaultList
			experiments v1alpha1.RedisExperimentList
			schedules   v1alpha1.RedisExperimentScheduleList
		)
		for _, list := range []client.ObjectList{&tests, &faults, &experiments, &schedules} {
			err := cache.List(ctx, list, client.UnsafeDisableDeepCopy)
			if err != nil {
				return nil, fmt.Errorf("list objects for the metrics: %w", err)
			}
		}
		return &metrics.Objects{
			LoadTests:   tests.Items,
			Faults:      faults.Items,
			Experiments: experiments.Items,
			Schedules:   schedules.Items,
		}, nil
	}
}

// lag measures the manager's lag, whether it leads or not.
type lag struct{ metrics *metrics.Metrics }

// Start implements manager.Runnable.
func (l lag) Start(ctx context.Context) error {
	l.metrics.FollowLag(ctx)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (lag) NeedLeaderElection() bool {
	return false
}

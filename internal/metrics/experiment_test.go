package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/redquake/redquake/api/v1alpha1"
)

// The series of an experiment are in the registry that the manager serves, and end with it; those of others stay.
func TestExperiment(t *testing.T) {
	SetRegressed("shop", "nightly", new(true))
	SetRegressed("shop", "weekly", new(false))
	SetRegressed("shop", "once", new(true))
	SetRegressed("shop", "once", nil)
	CountRun("shop", "nightly", v1alpha1.VerdictPass)
	CountRun("shop", "nightly", v1alpha1.VerdictPass)
	CountRun("shop", "nightly", "")
	check(t, `
# HELP redquake_experiment_regressed Whether a figure of a RedisExperiment is worse than in earlier runs (1) or not (0); absent while that is unknown. Of a schedule: now.
# TYPE redquake_experiment_regressed gauge
redquake_experiment_regressed{experiment="nightly",namespace="shop"} 1
redquake_experiment_regressed{experiment="weekly",namespace="shop"} 0
# HELP redquake_experiment_runs_total Runs of a RedisExperiment with a schedule that have ended, since this process has started, by verdict: Pass, Fail, Inconclusive, or None of those that could not complete.
# TYPE redquake_experiment_runs_total counter
redquake_experiment_runs_total{experiment="nightly",namespace="shop",verdict="None"} 1
redquake_experiment_runs_total{experiment="nightly",namespace="shop",verdict="Pass"} 2
`)
	Forget("shop", "nightly")
	check(t, `
# HELP redquake_experiment_regressed Whether a figure of a RedisExperiment is worse than in earlier runs (1) or not (0); absent while that is unknown. Of a schedule: now.
# TYPE redquake_experiment_regressed gauge
redquake_experiment_regressed{experiment="weekly",namespace="shop"} 0
`)
}

func check(t *testing.T, want string) {
	t.Helper()
	if err := testutil.GatherAndCompare(metrics.Registry, strings.NewReader(want), "redquake_experiment_regressed", "redquake_experiment_runs_total"); err != nil {
		t.Error(err)
	}
}

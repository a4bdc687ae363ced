// Package metrics is what the operator exports beside what controller-runtime does. A series ends with its object.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/redquake/redquake/api/v1alpha1"
)

// The labels.
const (
	labelNamespace  = "namespace"
	labelExperiment = "experiment"
	labelVerdict    = "verdict"
)

var (
	regressed = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "redquake_experiment_regressed", Help: "Whether a figure of a RedisExperiment is worse than in earlier runs (1) or not (0); absent while that is unknown. Of a schedule: now.",
	}, []string{labelNamespace, labelExperiment})
	runs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redquake_experiment_runs_total", Help: "Runs of a RedisExperiment with a schedule that have ended, since this process has started, by verdict: Pass, Fail, Inconclusive, or None of those that could not complete.",
	}, []string{labelNamespace, labelExperiment, labelVerdict})
)

func init() { metrics.Registry.MustRegister(regressed, runs) }

// SetRegressed stores whether something has regressed; nil = that is unknown.
func SetRegressed(namespace, experiment string, is *bool) {
	switch {
	case is == nil:
		regressed.DeleteLabelValues(namespace, experiment)
	case *is:
		regressed.WithLabelValues(namespace, experiment).Set(1)
	default:
		regressed.WithLabelValues(namespace, experiment).Set(0)
	}
}

// CountRun counts a run of a schedule; verdict is empty if it could not complete.
func CountRun(namespace, experiment string, verdict v1alpha1.Verdict) {
	if verdict == "" {
		verdict = "None"
	}
	runs.WithLabelValues(namespace, experiment, string(verdict)).Inc()
}

// Forget ends the series of a deleted experiment.
func Forget(namespace, experiment string) {
	of := prometheus.Labels{labelNamespace: namespace, labelExperiment: experiment}
	regressed.DeletePartialMatch(of)
	runs.DeletePartialMatch(of)
}

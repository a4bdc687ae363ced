package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is the kind of a metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram" // native and classic
)

// Definition describes a metric; docs/metrics.md is generated from all of them.
type Definition struct {
	Name    string
	Kind    Kind
	Unit    string // of the value; "" = a number
	Labels  []string
	Help    string
	Example string // a query
}

// The labels. Their values are those of a fixed list, apart from the names of objects and
// operations, whose series end with their object.
const (
	labelNamespace  = "namespace"
	labelLoadTest   = "loadtest"
	labelFault      = "fault"
	labelExperiment = "experiment"
	labelSchedule   = "schedule"
	labelOperation  = "operation"
	labelOutcome    = "outcome"
	labelClass      = "class"
	labelState      = "state"
	labelType       = "type"
	labelEffect     = "effect"
	labelVerdict    = "verdict"
)

// Label describes a label, for docs/metrics.md.
type Label struct{ Name, Values string }

// Labels are all labels.
func Labels() []Label {
	return []Label{
		{labelNamespace, "the namespace of an object that exists"},
		{labelLoadTest, "the name of a RedisLoadTest that exists"},
		{labelFault, "the name of a RedisFault that exists"},
		{labelExperiment, "the name of a RedisExperiment that exists"},
		{labelSchedule, "the name of a RedisExperimentSchedule that exists"},
		{labelOperation, "an operation of the load test's workload, by its spec; at most 65"},
		{
			labelOutcome,
			"`ok`; `failed`: without effect on Redis; `unknown`: with or without effect; `dropped`: never sent, because it would have been too late",
		},
		{labelClass, "one of the 15 [classes of errors](measuring.md#outcomes)"},
		{labelState, "where an object stands, or what is counted; the metric's meaning lists the values"},
		{labelType, "`action.type` of a fault, one of 21"},
		{labelEffect, "`Confirmed`, `NotObserved`, `Inconclusive`"},
		{
			labelVerdict,
			"`Pass`, `Fail`, `Inconclusive`; of what has ended also `None`: it could not complete; absent " +
				"before the end. Of comparisons: `Better`, `Worse`, `Same`, `Inconclusive`",
		},
	}
}

// family is a metric with its description for Prometheus.
type family struct {
	Definition
	desc *prometheus.Desc
}

// families are all metrics, in the order of their definition.
var families []*family

func define(d Definition) *family {
	f := &family{Definition: d, desc: prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)}
	families = append(families, f)
	return f
}

// Definitions are all metrics, by name.
func Definitions() []Definition {
	all := make([]Definition, len(families))
	for i, f := range families {
		all[i] = f.Definition
	}
	slices.SortFunc(all, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// counters returns the counters of a family that counts what this process has done.
func (f *family) counters() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
}

// set sends the value of a gauge with its labels, in the order of the definition.
func (f *family) set(out chan<- prometheus.Metric, value float64, labels ...string) {
	// It fails only for text that is not UTF-8, which the API server does not store; the other metrics
	// go on then.
	metric, err := prometheus.NewConstMetric(f.desc, prometheus.GaugeValue, value, labels...)
	if err == nil {
		out <- metric
	}
}

// count sends the value of a counter that counts since an instant.
func (f *family) count(
	out chan<- prometheus.Metric, since time.Time, value uint64, labels ...string,
) {
	metric, err := prometheus.NewConstMetricWithCreatedTimestamp(f.desc, prometheus.CounterValue,
		float64(value), since, labels...)
	if err == nil {
		out <- metric
	}
}

package operatortest

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Exported are the metrics of a process by name.
type Exported map[string][]*dto.Metric

// Exported returns what the process exports at this instant: when all that happens at it is done. A
// change is counted after its write, which a test can see before.
func (o *Operator) Exported(t *testing.T) Exported {
	t.Helper()
	synctest.Wait()
	return o.Gathered(t)
}

// Gathered are the metrics as they are now.
func (o *Operator) Gathered(t *testing.T) Exported {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o.Metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := Exported{}
	for _, f := range families {
		all[f.GetName()] = f.Metric
	}
	return all
}

// Sum adds the values of a metric over the series that have all of the labels, such as type=Config.
func (e Exported) Sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, m := range e[name] {
		has := map[string]bool{}
		for _, l := range m.Label {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && has[l]
		}
		if all {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

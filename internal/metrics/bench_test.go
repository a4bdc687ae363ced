package metrics

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

// BenchmarkAdd adds an interval with 60 cells, as a load pod has it every 100 ms.
func BenchmarkAdd(b *testing.B) {
	var h histogram.Histogram
	for i := range int64(60) {
		h.Record(int64(200*time.Microsecond) + i*int64(20*time.Microsecond))
	}
	iv := &record.Interval{Ops: []record.Op{{Latency: h.AppendTo(nil)}}}
	l := New(time.Now, nil).LoadOpened("cache", []string{"get"})
	b.ReportAllocs()
	for b.Loop() {
		l.Add(iv)
	}
}

// BenchmarkGather is one scrape of 1,000 load tests, of which 50 run, 1,000 faults, 100 experiments and 100 schedules.
func BenchmarkGather(b *testing.B) {
	registry := prometheus.NewRegistry()
	m := New(time.Now, nil)
	registry.MustRegister(m)
	var objects Objects
	for i := range 1000 {
		name := fmt.Sprint("object-", i)
		objects.LoadTests, objects.Faults = append(objects.LoadTests, load(name)), append(objects.Faults, kill(name))
		if i < 100 {
			objects.Experiments = append(objects.Experiments, matrix(name))
			objects.Schedules = append(objects.Schedules, nightly(name))
		}
		if i < 50 {
			m.LoadOpened(types.UID(name), []string{"get", "set"}).Add(interval())
		}
	}
	m.Lead(Leader{Objects: func(context.Context) (*Objects, error) { return &objects, nil }})
	b.ReportAllocs()
	for b.Loop() {
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, f := range families {
			n += len(f.Metric)
		}
		b.ReportMetric(float64(n), "series")
	}
}

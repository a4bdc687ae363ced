// Package metrics is what the operator exports for Prometheus, beside what controller-runtime does.
//
// What describes an object is read from the object whenever Prometheus asks: it is right after a
// restart of the operator, and ends with the object, whoever deleted it when. Only the manager that
// leads exports it. Counters count since the process started: after the write of a status that
// makes a change true, so a step that is repeated counts once.
package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
)

// readTimeout limits the read of the objects for one scrape: a cache that is not filled yet must
// not delay the other metrics.
const readTimeout = 2 * time.Second

// Objects are the objects that a leading manager has in its cache. They are only read.
type Objects struct {
	LoadTests   []v1alpha1.RedisLoadTest
	Faults      []v1alpha1.RedisFault
	Experiments []v1alpha1.RedisExperiment
	Schedules   []v1alpha1.RedisExperimentSchedule
}

// Sessions is what this process holds of running loads.
type Sessions struct {
	Count       int // sessions with load pods
	RecordBytes int // size of their records
	RecordLimit int // from which on they are coarsened
}

// Metrics are the metrics of one process. It is a prometheus.Collector. Its other methods may be
// called on nil, which counts nothing; all are safe for concurrent use.
type Metrics struct {
	now      func() time.Time
	since    time.Time // when the process started
	sessions func() Sessions
	leader   atomic.Pointer[Leader]
	faults   faultCounters
	ended    *prometheus.CounterVec // load tests
	lag      prometheus.Counter

	mu    sync.Mutex
	loads map[types.UID]*Load
	runs  map[types.NamespacedName]scheduleRuns
}

// Leader is a manager that leads.
type Leader struct {
	Objects func(context.Context) (*Objects, error) // as its cache has them
	// for how long it has not reconciled; nil = it always does
	Stalled func() time.Duration
}

// New returns the metrics of a process with a clock. sessions is called at each scrape; nil = there
// are none.
func New(now func() time.Time, sessions func() Sessions) *Metrics {
	if sessions == nil {
		sessions = func() Sessions { return Sessions{} }
	}
	m := &Metrics{
		now:      now,
		since:    now(),
		sessions: sessions,
		faults:   newFaultCounters(),
		ended:    loadTestsEnded.counters(),
		lag:      loopLag.counters().WithLabelValues(),
		loads:    map[types.UID]*Load{},
		runs:     map[types.NamespacedName]scheduleRuns{},
	}
	for _, verdict := range verdicts {
		m.ended.WithLabelValues(verdict)
	}
	return m
}

// Lead exports what the manager that leads knows, until stop is called at the end of its
// leadership.
func (m *Metrics) Lead(leader Leader) (stop func()) {
	if m == nil {
		return func() {}
	}
	m.leader.Store(&leader)
	return func() { m.leader.CompareAndSwap(&leader, nil) }
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, f := range families {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.faults.collect(out)
	m.ended.Collect(out)
	m.collectManager(out)
	l := m.leader.Load()
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	objects, err := l.Objects(ctx)
	if err != nil { // the cache is not filled yet, or the manager ends
		return
	}
	m.collectLoadTests(out, objects.LoadTests)
	collectFaults(out, objects)
	collectExperiments(out, objects.Experiments)
	m.collectSchedules(out, objects.Schedules)
}

// verdicts are the values of the label verdict of what has ended.
var verdicts = []string{
	string(v1alpha1.VerdictPass), string(v1alpha1.VerdictFail),
	string(v1alpha1.VerdictInconclusive), noVerdict,
}

// noVerdict is the label of what has ended without a verdict: it could not complete.
const noVerdict = "None"

// verdictOf is the label of what has ended.
func verdictOf(v v1alpha1.Verdict) string {
	if v == "" {
		return noVerdict
	}
	return string(v)
}

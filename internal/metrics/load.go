package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record"
)

var (
	loadTestInfo = define(Definition{
		Name:    "redquake_loadtest_info",
		Kind:    Gauge,
		Labels:  []string{labelNamespace, labelLoadTest, labelState, labelVerdict},
		Help:    "1 for each RedisLoadTest, with its state: Pending, Running, Suspended, Complete or Failed.",
		Example: `count by (state) (max by (namespace, loadtest, state) (redquake_loadtest_info))`,
	})
	loadTestPods = define(Definition{
		Name:    "redquake_loadtest_pods",
		Kind:    Gauge,
		Labels:  []string{labelNamespace, labelLoadTest, labelState},
		Help:    "Load pods of a RedisLoadTest: Desired, Ready and Lost.",
		Example: `max by (namespace, loadtest) (redquake_loadtest_pods{state="Lost"}) > 0`,
	})
	loadTestProgress = define(Definition{
		Name:    "redquake_loadtest_progress_ratio",
		Kind:    Gauge,
		Unit:    "share, from 0 to 1",
		Labels:  []string{labelNamespace, labelLoadTest},
		Help:    "Completed part of a RedisLoadTest.",
		Example: `max by (namespace, loadtest) (redquake_loadtest_progress_ratio)`,
	})
	loadRequests = define(Definition{
		Name:   "redquake_loadtest_requests_total",
		Kind:   Counter,
		Labels: []string{labelNamespace, labelLoadTest, labelOperation, labelOutcome},
		Help: "Requests of a running RedisLoadTest with a known outcome, as this manager has " +
			"collected them from the load pods. The series stay for 5 minutes after the end.",
		Example: `sum by (namespace, loadtest) (rate(redquake_loadtest_requests_total{outcome="ok"}[1m]))`,
	})
	loadErrors = define(Definition{
		Name:    "redquake_loadtest_errors_total",
		Kind:    Counter,
		Labels:  []string{labelNamespace, labelLoadTest, labelClass},
		Help:    "Failed and unknown requests of a running RedisLoadTest, by class of error.",
		Example: `sum by (namespace, loadtest, class) (rate(redquake_loadtest_errors_total[1m])) > 0`,
	})
	loadLatency = define(Definition{
		Name:   "redquake_loadtest_latency_seconds",
		Kind:   Histogram,
		Unit:   "seconds",
		Labels: []string{labelNamespace, labelLoadTest, labelOperation},
		Help: "Latency of successful requests of a running RedisLoadTest: with a rate or stages " +
			"from the intended arrival, else from the send.",
		Example: `histogram_quantile(0.99, sum by (namespace, loadtest, le) (rate(redquake_loadtest_latency_seconds_bucket[1m])))`,
	})
	loadTestsEnded = define(Definition{
		Name:    "redquake_loadtest_ended_total",
		Kind:    Counter,
		Labels:  []string{labelVerdict},
		Help:    "RedisLoadTests that have ended, by verdict.",
		Example: `sum by (verdict) (increase(redquake_loadtest_ended_total[1d]))`,
	})
)

// lingers is for how long the counters of a load that has ended stay, so that Prometheus has their
// last values: as long as it looks back.
const lingers = 5 * time.Minute

// Load counts what this process collects of one load, from 0 on. After a restart of the operator,
// what the last checkpoint did not contain is collected again, up to 10 s, and counted again.
type Load struct {
	since      time.Time
	operations []string // each once
	sumOf      []int    // the position in operations and sums of each operation of the plan

	mu      sync.Mutex
	sums    []operationSum
	errors  [record.NumClasses]uint64
	endedAt time.Time // zero = it runs
}

// operationSum is the requests of an operation.
type operationSum struct {
	ok, failed, unknown, dropped uint64
	latencies                    latencies
}

// LoadOpened returns what counts a load whose collection begins in this process: Add is to be
// called with each interval of a load pod.
func (m *Metrics) LoadOpened(test types.UID, operations []string) *Load {
	l := &Load{}
	for _, name := range operations {
		at := slices.Index(l.operations, name)
		if at < 0 {
			at = len(l.operations)
			l.operations = append(l.operations, name)
		}
		l.sumOf = append(l.sumOf, at)
	}
	l.sums = make([]operationSum, len(l.operations))
	if m == nil {
		return l
	}
	l.since = m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, old := range m.loads {
		if old.isOver(l.since) {
			delete(m.loads, id)
		}
	}
	m.loads[test] = l
	return l
}

// LoadEnded counts a load test that has ended. Call it after the write of its status. verdict is
// empty if it could not complete.
func (m *Metrics) LoadEnded(test types.UID, verdict v1alpha1.Verdict) {
	if m == nil {
		return
	}
	m.ended.WithLabelValues(verdictOf(verdict)).Inc()
	m.mu.Lock()
	l := m.loads[test]
	m.mu.Unlock()
	if l != nil {
		l.mu.Lock()
		l.endedAt = m.now()
		l.mu.Unlock()
	}
}

// RetainLoads frees what is kept of load tests that were deleted.
func (m *Metrics) RetainLoads(keep map[types.UID]bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.loads {
		if !keep[id] {
			delete(m.loads, id)
		}
	}
}

// Add adds an interval of a load pod, which is only read and not retained.
func (l *Load) Add(iv *record.Interval) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range min(len(iv.Ops), len(l.sumOf)) {
		from, to := &iv.Ops[k], &l.sums[l.sumOf[k]]
		to.ok += from.OK
		to.failed += from.Fail
		to.unknown += from.Unknown
		to.dropped += from.Dropped
		to.latencies.add(from.Latency)
		for class, n := range from.Errors {
			l.errors[class] += n
		}
	}
}

// isOver reports whether the load ended so long ago that its counters end.
func (l *Load) isOver(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.endedAt.IsZero() && now.Sub(l.endedAt) > lingers
}

func (m *Metrics) collectLoadTests(out chan<- prometheus.Metric, all []v1alpha1.RedisLoadTest) {
	now := m.now()
	for i := range all {
		test := &all[i]
		status, of := &test.Status, []string{test.Namespace, test.Name}
		loadTestInfo.set(out, 1, append(slices.Clone(of),
			stateOf(status.Conditions, status.StartTime != nil), string(status.Verdict))...)
		if pods := status.LoadPods; pods != nil {
			for state, n := range map[string]int32{
				"Desired": pods.Desired,
				"Ready":   pods.Ready,
				"Lost":    pods.Lost,
			} {
				loadTestPods.set(out, float64(n), append(slices.Clone(of), state)...)
			}
		}
		if status.StartTime != nil {
			loadTestProgress.set(out, float64(status.Progress)/100, of...)
		}
		m.mu.Lock()
		l := m.loads[test.UID]
		m.mu.Unlock()
		if l != nil && !l.isOver(now) {
			l.collect(out, of)
		}
	}
}

// collect sends the counters of a load with the labels of its test. All classes of errors begin
// with 0: the increase to the first error counts as well.
func (l *Load) collect(out chan<- prometheus.Metric, of []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := func(f *family, n uint64, labels ...string) {
		f.count(out, l.since, n, append(slices.Clone(of), labels...)...)
	}
	for k := range l.sums {
		sum, operation := &l.sums[k], strings.ToValidUTF8(l.operations[k], "?")
		count(loadRequests, sum.ok, operation, "ok")
		count(loadRequests, sum.failed, operation, "failed")
		count(loadRequests, sum.unknown, operation, "unknown")
		count(loadRequests, sum.dropped, operation, "dropped")
		metric, err := sum.latencies.metric(loadLatency.desc, l.since,
			append(slices.Clone(of), operation)...)
		if err == nil {
			out <- metric
		}
	}
	for class, n := range l.errors {
		count(loadErrors, n, record.Class(class).String())
	}
}

//go:build integration

package operator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/prometheustest"
)

// plantedMetric is a metric that a test serves.
type plantedMetric struct{ value atomic.Value }

func (p *plantedMetric) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "# TYPE planted_error_rate gauge\nplanted_error_rate %v\n", p.value.Load())
}

// startPrometheus starts Debian's Prometheus, which reads the planted metric every 10 s, in which a machine that stalls
// answers, and waits until it has it.
func startPrometheus(t *testing.T, metric *plantedMetric) (url string, process *os.Process) {
	t.Helper()
	scraped := httptest.NewServer(metric)
	t.Cleanup(scraped.Close)
	server := prometheustest.Start(t, "prometheus",
		fmt.Sprintf(
			"global: {scrape_interval: 10s, scrape_timeout: 10s}\nscrape_configs:\n- job_name: planted\n  static_configs: "+
				"[{targets: [%q]}]\n", strings.TrimPrefix(scraped.URL, "http://")))
	server.Has(t, "the planted metric", "planted_error_rate")
	return server.URL, server.Process
}

// A real Prometheus: a breach of a query reverts the fault, and so does its death.
func TestPrometheusBreach(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breach  func(metric *plantedMetric, server *os.Process)
		says    string
		verdict v1alpha1.Verdict
	}{
		"the planted metric rises": {func(metric *plantedMetric, _ *os.Process) {
			metric.value.Store(
				0.25)
		}, "the result is 0.25, above 0.01", v1alpha1.VerdictFail},
		"Prometheus is killed": {
			func(_ *plantedMetric, server *os.Process) { _ = server.Kill() },
			"spec.stopIf.queries[slo]: ",
			v1alpha1.VerdictInconclusive,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metric := &plantedMetric{}
			metric.value.Store(0.001)
			url, server := startPrometheus(t, metric)
			p := operatortest.Scenario{Load: operatortest.Lasting(time.Hour)}.OnAPIServer(t)
			f := operatortest.HzFor("stops", "50", time.Hour)
			f.Spec.Trigger.After = operatortest.Length(2 * time.Second)
			f.Spec.StopIf = &v1alpha1.StopConditions{Queries: []v1alpha1.StopQuery{{
				Name: "slo", Prometheus: v1alpha1.PrometheusServer{URL: url}, Query: "max(planted_error_rate)", Above: new("0.01"),
				Every: metav1.Duration{Duration: 12 * time.Second}, // an answer may take nine tenths of it, at most 10 s
			}}}
			p.Create(f)
			p.FaultHasReason("stops", await.Limit, v1alpha1.ReasonActive)
			if now := p.Redis.Hz(""); now != "50" {
				t.Fatalf("hz is %s while the fault is active; breach %+v", now, p.Fault("stops").Status.Breach)
			}
			began := time.Now()
			test.breach(metric, server)
			reverted := operatortest.HzIs(t, p.Redis, "10", await.Limit)
			var b *v1alpha1.Breach
			p.Until("the breach is stored", await.Limit, func() bool { b = p.Fault("stops").Status.Breach; return b != nil },
				func() string { return operatortest.Where(p.Fault("stops").Status.Conditions) })
			t.Logf("from the cause to the breach %s, from the breach to Redis as before %s: %s", b.At.Sub(began),
				reverted.Sub(b.At.Time), b.Message)
			if !strings.Contains(b.Message, test.says) || b.Answered != (test.verdict == v1alpha1.VerdictFail) {
				t.Errorf("breach %+v, want %q", b, test.says)
			}
			// the observation of the recovery
			p.MustChange(operatortest.Change(p, p.Fault("stops"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
			f = p.FaultEnds("stops", await.Limit)
			if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonStopConditionMet || f.Status.Verdict != test.verdict {
				t.Errorf("%s, verdict %s; want %s", operatortest.Where(f.Status.Conditions), f.Status.Verdict, test.verdict)
			}
		})
	}
}

// Real load pods find what a real server has lost while the load runs, and the fault is reverted; the ledger that is
// read afterwards has the same writes.
func TestLostWritesBreach(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{Load: operatortest.Load(func(test *v1alpha1.RedisLoadTest) {
		operatortest.Verifies(test)
		test.Spec.Pods.Count, test.Spec.Load.Duration = 2, operatortest.Length(time.Hour)
	})}.OnAPIServer(t)
	redis := p.Redis
	f := operatortest.HzFor("stops", "50", time.Hour)
	f.Spec.Trigger.After = operatortest.Length(2 * time.Second)
	f.Spec.StopIf = &v1alpha1.StopConditions{LostWrites: new(int64(1))}
	p.Create(f)
	p.FaultHasReason("stops", await.Limit, v1alpha1.ReasonActive)
	if now := redis.Hz(""); now != "50" {
		t.Fatalf("hz is %s while the fault is active", now)
	}
	began := time.Now()
	server := goredis.NewClient(&goredis.Options{Addr: redis.Address()})
	defer server.Close()
	if err := server.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	reverted := operatortest.HzIs(t, redis, "10", await.Limit)
	var b *v1alpha1.Breach
	p.Until("the breach is stored", await.Limit, func() bool { b = p.Fault("stops").Status.Breach; return b != nil },
		func() string { return operatortest.Where(p.Fault("stops").Status.Conditions) })
	t.Logf("from the loss to the breach %s, from the breach to Redis as before %s: %s", b.At.Sub(began),
		reverted.Sub(b.At.Time), b.Message)
	var found int64
	if _, err := fmt.Sscanf(b.Message, "spec.stopIf.lostWrites: %d acknowledged ledger writes are lost, limit 1",
		&found); err != nil || !b.Answered || found < 1 {
		t.Fatalf("breach %+v", b)
	}
	// the observation of the recovery
	p.MustChange(operatortest.Change(p, p.Fault("stops"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	f = p.FaultEnds("stops", await.Limit)
	if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonStopConditionMet ||
		f.Status.Verdict != v1alpha1.VerdictFail {
		t.Errorf("%s, verdict %s", operatortest.Where(f.Status.Conditions), f.Status.Verdict)
	}
}

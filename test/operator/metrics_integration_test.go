//go:build integration

package operator

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	shared "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/prometheustest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// Real Prometheus servers scrape an operator: each query of the dashboards, and each example of a metric, has a result
// while a fault is active, and each alert can be evaluated; from classic histograms and from native ones, with Debian's
// Prometheus and with Prometheus 3.
func TestQueriesOfARealPrometheus(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	redis := operatortest.StartRedis(p)
	operatortest.StartKubelet(p, nil)
	recoveredEarlier(p, "earlier")
	o := operatortest.StartOperator(p, operatortest.Spy{})
	servers := scraped(o, t)

	p.Create(operatortest.NewLoadTest("verified", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		operatortest.Verifies(test)
		test.Spec.Load.Duration, test.Spec.Load.UntilFaultsSettle = operatortest.Length(14*time.Second),
			operatortest.Length(2*time.Minute)
	}))
	p.Create(operatortest.NewFault("kill", "verified", v1alpha1.FaultPodKill, nil))
	p.Create(operatortest.NewExperiment("once", redis.Address(), func(e *v1alpha1.RedisExperiment) {
		e.Spec.Repeat, e.Spec.Template.Spec.Load.Duration = 1, operatortest.Length(time.Second)
	}))
	p.Create(scheduletest.NewSchedule("nightly", func(s *v1alpha1.RedisExperimentSchedule) { s.Spec.Suspend = true }))
	p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Duration = operatortest.Length(
			time.Hour)
	}))
	p.FaultEnds("kill", 2*time.Minute)
	p.Until("the experiment is over", 2*time.Minute,
		func() bool { return state.IsFinished(p.Experiment("once").Status.Conditions) },
		func() string { return operatortest.Where(p.Experiment("once").Status.Conditions) })
	p.Create(operatortest.NewFault("active", "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
		f.Spec.Duration = operatortest.Length(time.Hour)
	}))
	p.FaultHasReason("active", time.Minute, v1alpha1.ReasonActive)

	for name, server := range servers {
		t.Run(name, func(t *testing.T) { answersAll(t, server, strings.HasSuffix(name, "classic histograms")) })
	}
	if f := p.Fault("active"); f.Status.RevertedAt != nil {
		t.Errorf("the fault ended meanwhile: %s", operatortest.Where(f.Status.Conditions))
	}
}

// answersAll waits until a server that scrapes an operator with an active fault has a result for every query, and none
// for the alerts.
func answersAll(t *testing.T, server *prometheustest.Server, classic bool) {
	t.Helper()
	server.Has(t, "the active fault",
		`redquake_fault_info{fault="active",state="Active"} and on(namespace, fault) redquake_fault_outage_seconds`)
	one, other := `redquake_loadtest_latency_seconds_bucket`, `histogram_count(redquake_loadtest_latency_seconds) > 0`
	if !classic {
		one, other = other, one
	}
	server.Has(t, "the form of histogram that is scraped", one)
	server.HasNot(t, "the other form of histogram", other)
	for _, d := range prometheustest.Dashboards(t, "../..") {
		for _, q := range d.Queries() {
			server.Has(t, q.From, q.With("1m", "30m"))
		}
	}
	for _, q := range prometheustest.ReadRules(t, "../..").Queries() {
		server.HasNot(t, q.From, q.Expr)
	}
	for _, d := range metrics.Definitions() {
		await.Until(t, "the example of "+d.Name+" can be evaluated", func() error {
			_, err := server.Ask(d.Example)
			return err
		})
	}
}

// recoveredEarlier stores a fault that was over before the operator started: on a machine that stalls, load may not
// recover from one within any deadline.
func recoveredEarlier(p *operatortest.Place, name string) {
	p.T.Helper()
	f := operatortest.NewFault(name, "earlier", v1alpha1.FaultFailover, nil)
	p.Create(f)
	ago := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(time.Now().Add(-d))) }
	f.Status = v1alpha1.RedisFaultStatus{
		LoadTest:       "earlier",
		StartTime:      ago(80 * time.Second),
		InjectedAt:     ago(60 * time.Second),
		RevertedAt:     ago(60 * time.Second),
		RecoveredAt:    ago(59 * time.Second),
		SettledTime:    ago(49 * time.Second),
		CompletionTime: ago(48 * time.Second),
		Impact: &v1alpha1.Impact{
			RecoveryTime: &v1alpha1.BoundedDuration{
				Value:   v1alpha1.DurationOf(1 * time.Second),
				AtLeast: v1alpha1.DurationOf(1 * time.Second),
				AtMost:  v1alpha1.DurationOf(1 * time.Second),
			},
		},
		Conditions: []metav1.Condition{
			{
				Type:               v1alpha1.ConditionComplete,
				Status:             metav1.ConditionTrue,
				Reason:             v1alpha1.ReasonSucceeded,
				LastTransitionTime: metav1.Now(),
			},
		},
	}
	p.MustChange(p.Client.Status().Update(context.Background(), f))
}

// scraped starts Prometheus servers that read the metrics of an operator, with those of controller-runtime. A scrape
// may take as long as the time between two: one that is missed takes the operator's metrics away until the next.
func scraped(o *operatortest.Operator, t *testing.T) map[string]*prometheustest.Server {
	t.Helper()
	own := prometheus.NewRegistry()
	own.MustRegister(o.Metrics)
	endpoint := httptest.NewServer(
		promhttp.HandlerFor(prometheus.Gatherers{shared.Registry, own}, promhttp.HandlerOpts{
			ErrorHandling: promhttp.HTTPErrorOnError,
		}))
	t.Cleanup(endpoint.Close)
	config := fmt.Sprintf(
		"global: {scrape_interval: 10s, scrape_timeout: 10s}\nscrape_configs:\n- job_name: redquake\n  honor_labels: "+
			"true\n  static_configs: [{targets: [%q]}]\n", strings.TrimPrefix(endpoint.URL, "http://"))
	const native = "--enable-feature=native-histograms"
	return map[string]*prometheustest.Server{
		"Debian's, classic histograms":     prometheustest.Start(t, "prometheus", config),
		"Debian's, native histograms":      prometheustest.Start(t, "prometheus", config, native),
		"Prometheus 3, classic histograms": prometheustest.Start(t, "prometheus3", config),
		"Prometheus 3, native histograms":  prometheustest.Start(t, "prometheus3", config, native),
	}
}

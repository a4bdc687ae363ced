package redisfault_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// queried stands in for a Prometheus: it answers every query.
type queried struct {
	url    string
	asked  atomic.Int64
	answer atomic.Value // func(w http.ResponseWriter, r *http.Request)
	server *http.Server
}

func startMetrics(w *operatortest.World) *queried {
	w.T.Helper()
	m := &queried{url: "http://10.0.0.5:9090"}
	m.returns("0.001")
	m.server = w.Serve("10.0.0.5:9090", func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		m.answer.Load().(func(http.ResponseWriter, *http.Request))(w, r)
	})
	return m
}

// returns answers with samples of these values.
func (m *queried) returns(values ...string) {
	var all []string
	for i, v := range values {
		all = append(all, fmt.Sprintf(`{"metric":{"i":"%d"},"value":[1,"%s"]}`, i, v))
	}
	m.says(http.StatusOK, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Join(all, ",")+`]}}`)
}

func (m *queried) says(code int, body string) {
	m.answer.Store(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	})
}

func (m *queried) silent() {
	m.answer.Store(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		<-r.Context().Done()
	})
}

func (m *queried) query() *v1alpha1.StopConditions {
	return &v1alpha1.StopConditions{Queries: []v1alpha1.StopQuery{{
		Name:       "slo",
		Prometheus: v1alpha1.PrometheusServer{URL: m.url},
		Query:      "errors",
		Above:      new("0.01"),
		Every:      metav1.Duration{Duration: 2 * time.Second},
	}}}
}

// A stop condition that holds while a fault is active reverts it at once; the fault is then measured to its end, and
// says which condition it was.
func TestStopConditions(t *testing.T) {
	t.Parallel()
	outage := func(*queried) *v1alpha1.StopConditions {
		return &v1alpha1.StopConditions{Outage: operatortest.Length(3 * time.Second)}
	}
	errors := func(*queried) *v1alpha1.StopConditions { return &v1alpha1.StopConditions{ErrorRate: new("50%")} }
	query := func(m *queried) *v1alpha1.StopConditions { return m.query() }
	tests := map[string]struct {
		stopIf  func(*queried) *v1alpha1.StopConditions
		breach  func(w *operatortest.World, redis *operatortest.RedisSet, m *queried)
		within  time.Duration
		field   string
		says    string
		verdict v1alpha1.Verdict
	}{
		"outage": {
			outage, func(_ *operatortest.World, redis *operatortest.RedisSet, _ *queried) { redis.Silence() }, 6 * time.Second,
			"spec.stopIf.outage", "limit 3s", v1alpha1.VerdictFail,
		},
		"error rate": {
			errors, func(_ *operatortest.World, redis *operatortest.RedisSet, _ *queried) { redis.Silence() }, 3 * time.Second,
			"spec.stopIf.errorRate", "limit 50%", v1alpha1.VerdictFail,
		},
		"above": {
			query, func(_ *operatortest.World, _ *operatortest.RedisSet, m *queried) {
				m.returns("0.001",
					"0.25")
			}, 3 * time.Second,
			"spec.stopIf.queries[slo]", "the result is 0.25, above 0.01", v1alpha1.VerdictFail,
		},
		"no data": {
			query, func(_ *operatortest.World, _ *operatortest.RedisSet, m *queried) { m.returns() }, 3 * time.Second,
			"spec.stopIf.queries[slo]", "no data", v1alpha1.VerdictInconclusive,
		},
		"NaN": {
			query, func(_ *operatortest.World, _ *operatortest.RedisSet, m *queried) { m.returns("NaN") }, 3 * time.Second,
			"spec.stopIf.queries[slo]", "NaN", v1alpha1.VerdictInconclusive,
		},
		"error": {query, func(_ *operatortest.World, _ *operatortest.RedisSet, m *queried) {
			m.says(http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"out of memory"}`)
		}, 3 * time.Second, "spec.stopIf.queries[slo]", "out of memory", v1alpha1.VerdictInconclusive},
		"no answer": {
			query, func(_ *operatortest.World, _ *operatortest.RedisSet, m *queried) { m.silent() }, 5 * time.Second,
			"spec.stopIf.queries[slo]", "no answer within 1.8s", v1alpha1.VerdictInconclusive,
		},
		"killed": {
			query, func(_ *operatortest.World, _ *operatortest.RedisSet, m *queried) { _ = m.server.Close() }, 3 * time.Second,
			"spec.stopIf.queries[slo]", "refused", v1alpha1.VerdictInconclusive,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun, Measured: true}.Run(t, func(w *operatortest.World) {
				redis, m := w.Redis, startMetrics(w)
				f := operatortest.HzFor("stops", "50", 5*time.Minute)
				f.Spec.StopIf = test.stopIf(m)
				w.Create(f)
				operatortest.HzIs(t, redis, "50", time.Minute)
				w.FaultHasReason("stops", time.Minute, v1alpha1.ReasonActive)
				time.Sleep(20 * time.Second)
				if now := w.Fault("stops"); now.Status.Breach != nil || redis.Hz("") != "50" {
					t.Fatalf("ended without a breach: %+v", now.Status.Breach)
				}
				began := time.Now()
				test.breach(w, redis, m)
				silent := name == "outage" || name == "error rate"
				if silent {
					time.Sleep(test.within)
					redis.Resume()
				}
				reverted := operatortest.HzIs(t, redis, "10", 10*time.Second)
				f = w.FaultEnds("stops", 3*time.Minute)
				b := f.Status.Breach
				if b == nil || b.Condition != test.field || !strings.Contains(b.Message, test.field) ||
					!strings.Contains(b.Message, test.says) || b.Answered != (test.verdict == v1alpha1.VerdictFail) {
					t.Fatalf("breach %+v, want %s with %q", b, test.field, test.says)
				}
				t.Logf("seen after %s, reverted %s later: %s", b.At.Sub(began), reverted.Sub(b.At.Time),
					operatortest.Where(f.Status.Conditions))
				if seen := b.At.Sub(began); seen < 0 || seen > test.within {
					t.Errorf("the breach was seen after %s, want at most %s", seen, test.within)
				}
				if since := f.Status.RevertingSince.Sub(b.At.Time); since != 0 || !silent && reverted.Sub(b.At.Time) > time.Second {
					t.Errorf("the revert began %s after the breach, and was done after %s", since, reverted.Sub(b.At.Time))
				}
				checkStopped(t, w, f, test.verdict)
			})
		})
	}
}

// checkStopped checks what every fault shows that a stop condition ended.
func checkStopped(t *testing.T, w *operatortest.World, f *v1alpha1.RedisFault, verdict v1alpha1.Verdict) {
	t.Helper()
	if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonStopConditionMet ||
		!strings.Contains(operatortest.Where(f.Status.Conditions), f.Status.Breach.Message) {
		t.Errorf("%s; want the breach", operatortest.Where(f.Status.Conditions))
	}
	if f.Status.Verdict != verdict || hasDoubt(f, "CutShort") || f.Status.Impact == nil || !f.Status.Impact.Recovered {
		t.Errorf("verdict %s, impact %+v; want %s, and a measured recovery", f.Status.Verdict, f.Status.Impact, verdict)
	}
	if f.Status.Overstayed != nil && verdict != v1alpha1.VerdictFail {
		t.Errorf("overstayed %s", f.Status.Overstayed.Duration)
	}
	if events := strings.Join(operatortest.TimelineOf(f), " "); !strings.Contains(events, "StopConditionMet") {
		t.Errorf("timeline: %s", events)
	}
	if warnings := strings.Join(warningsOf(w.Place, f.Name), "; "); !strings.Contains(warnings, "StopConditionMet") {
		t.Errorf("warnings: %s", warnings)
	}
}

// A fault for which a stop condition holds before the injection, or cannot be evaluated, is not injected.
func TestNotInjectedIfStopConditionHolds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(m *queried)
		says    string
	}{
		"in breach": {func(m *queried) { m.returns("7") }, "the result is 7, above 0.01"},
		"silent":    {func(m *queried) { m.silent() }, "no answer"},
		"absent":    {func(m *queried) { _ = m.server.Close() }, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
				m := startMetrics(w)
				test.prepare(m)
				f := operatortest.HzFor("stops", "50", time.Minute)
				f.Spec.StopIf = m.query()
				w.Create(f)
				f = w.FaultEnds("stops", time.Minute)
				if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonStopConditionMet ||
					!strings.Contains(operatortest.Where(f.Status.Conditions), test.says) || f.Status.Breach == nil {
					t.Errorf("%s, %+v; want %q", operatortest.Where(f.Status.Conditions), f.Status.Breach, test.says)
				}
				if f.Status.InjectedAt != nil || w.Redis.Hz("") != "10" || len(f.Status.Targets) > 0 {
					t.Errorf("it was injected at %v", f.Status.InjectedAt)
				}
			})
		})
	}
}

// A fault whose stop condition may not be asked is refused as soon as it is seen, also by a dry run, and not injected
// without its guard.
func TestRefusedIfStopConditionMayNotBeAsked(t *testing.T) {
	t.Parallel()
	for _, dryRun := range []bool{false, true} {
		t.Run(fmt.Sprintf("dry run %v", dryRun), func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
				m := startMetrics(w)
				f := operatortest.HzFor("stops", "50", time.Minute)
				f.Spec.StopIf, f.Spec.DryRun = m.query(), dryRun
				f.Spec.StopIf.Queries[0].Prometheus.URL = "http://10.0.0.6:9090"
				f.Spec.Trigger.After = operatortest.Length(time.Hour) // it is not found out only then
				w.Create(f)
				f = w.FaultEnds("stops", time.Minute)
				for _, want := range []string{"spec.stopIf.queries[slo].prometheus.url", "host 10.0.0.6", "--prometheus-hosts"} {
					if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonForbiddenByPolicy ||
						!strings.Contains(operatortest.Where(f.Status.Conditions), want) {
						t.Errorf("%s; want %q", operatortest.Where(f.Status.Conditions), want)
					}
				}
				if f.Status.InjectedAt != nil || w.Redis.Hz("") != "10" || m.asked.Load() > 0 {
					t.Errorf("it was injected at %v, after %d queries", f.Status.InjectedAt, m.asked.Load())
				}
			})
		})
	}
}

// Nothing is asked while nothing is injected.
func TestQueriesOnlyWhileInjected(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		m := startMetrics(w)
		f := operatortest.HzFor("stops", "50", 20*time.Second)
		f.Spec.StopIf = m.query()
		f.Spec.Trigger.After = operatortest.Length(time.Minute)
		w.Create(f)
		time.Sleep(50 * time.Second)
		if n := m.asked.Load(); n != 0 {
			t.Errorf("%d queries before the injection", n)
		}
		f = w.FaultEnds("stops", 5*time.Minute)
		if n := m.asked.Load(); n < 10 || n > 12 || operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("%d queries, want one before and one each 2 s of 20 s; %s", n, operatortest.Where(f.Status.Conditions))
		}
	})
}

// Evaluation goes on when the API server stops, and when another process takes over; the breach is in the status
// afterwards.
func TestStopConditionWhateverIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun, Measured: true}.Run(t, func(w *operatortest.World) {
				m := startMetrics(w)
				f := operatortest.HzFor("stops", "50", 5*time.Minute)
				f.Spec.StopIf = m.query()
				w.Create(f)
				operatortest.HzIs(t, w.Redis, "50", time.Minute)
				w.FaultHasReason("stops", time.Minute, v1alpha1.ReasonActive)
				end := sync.OnceFunc(lose(w, w.Operator))
				time.Sleep(20 * time.Second)
				if w.Redis.Hz("") != "50" {
					t.Fatal("reverted without a breach")
				}
				m.returns("7")
				if name == "leadership is lost" { // nobody leads, and the API server answers: the next leader evaluates
					time.Sleep(10 * time.Second)
					end()
				}
				operatortest.HzIs(t, w.Redis, "10", 5*time.Second)
				time.Sleep(20 * time.Second)
				end()
				f = w.FaultEnds("stops", 3*time.Minute)
				if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonStopConditionMet || f.Status.Breach == nil {
					t.Errorf("%s, %+v", operatortest.Where(f.Status.Conditions), f.Status.Breach)
				}
			})
		})
	}
}

// The record of the load cannot be read any more: that counts as a breach of a limit on its figures.
func TestUnreadableRecordIsABreach(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun, Measured: true}.Run(t, func(w *operatortest.World) {
		redis := w.Redis
		f := operatortest.HzFor("stops", "50", 5*time.Minute)
		f.Spec.StopIf = &v1alpha1.StopConditions{ErrorRate: new("99%")}
		w.Create(f)
		operatortest.HzIs(t, redis, "50", time.Minute)
		w.FaultHasReason("stops", time.Minute, v1alpha1.ReasonActive)
		time.Sleep(15 * time.Second)
		began := time.Now()
		var pods corev1.PodList
		if err := w.Client.List(t.Context(), &pods, client.InNamespace(w.Namespace), client.HasLabels{
			v1alpha1.LabelLoadTest,
		}); err != nil || len(pods.Items) == 0 {
			t.Fatalf("%d load pods, %v", len(pods.Items), err)
		}
		for i := range pods.Items {
			w.Network.Set(pods.Items[i].Status.PodIP+":7379", memnet.Swallow)
		}
		reverted := operatortest.HzIs(t, redis, "10", 10*time.Second)
		if after := reverted.Sub(began); after < 4*time.Second {
			t.Errorf("reverted after %s", after)
		}
		w.Until("the breach is stored", time.Minute, func() bool { return w.Fault("stops").Status.Breach != nil },
			func() string { return "" })
		if b := w.Fault("stops").Status.Breach; b.Answered ||
			!strings.Contains(b.Message, "the load's record cannot be read") {
			t.Errorf("breach %+v", b)
		}
	})
}

package controllers

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// searchFor returns a search with a known result: each request in flight takes 100 ms, which limits the rate to 10/s
// each.
func searchFor(inFlight int32) func(test *v1alpha1.RedisLoadTest) {
	return func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Client.Connections = inFlight
		test.Spec.Client.AddedLatency = &metav1.Duration{Duration: 100 * time.Millisecond}
		test.Spec.Client.RequestTimeout = metav1.Duration{Duration: time.Second}
		test.Spec.Load = v1alpha1.LoadShape{
			Users: new(inFlight), Duration: length(5 * time.Minute), WarmUp: length(time.Second),
			Search: &v1alpha1.LoadSearch{
				From:      20,
				To:        1000,
				Precision: "20%",
				Trial:     metav1.Duration{Duration: 2 * time.Second},
				Settle:    metav1.Duration{Duration: 500 * time.Millisecond},
			},
		}
		test.Spec.Objectives = &v1alpha1.Objectives{
			MaxLatencyP50: &metav1.Duration{Duration: 300 * time.Millisecond},
			MinThroughput: new("30"),
		}
	}
}

// checkFound checks a completed search with the result 80 requests/s: each trial is evaluated once, and a repeated
// trial counts as one more.
func checkFound(t *testing.T, test *v1alpha1.RedisLoadTest) {
	t.Helper()
	found := test.Status.Search
	if found == nil {
		t.Fatalf("no search in the status: %s", where(test.Status.Conditions))
	}
	var rates []int32
	for i, trial := range found.Trials {
		rates = append(rates, trial.Rate)
		if trial.Met == nil || *trial.Met != (trial.Rate <= 80) {
			t.Errorf("trial %d of %d/s: met %v, %s/s, p99 %v: %s", i, trial.Rate, trial.Met, trial.Throughput, trial.LatencyP99,
				trial.Message)
		}
		if i > 0 && trial.StartTime.Sub(found.Trials[i-1].StartTime.Time) < 2500*time.Millisecond {
			t.Errorf("trial %d began %v after the one before", i, trial.StartTime.Sub(found.Trials[i-1].StartTime.Time))
		}
	}
	if want := []int32{20, 40, 80, 160, 160, 113, 113, 95, 95, 80}; !found.Done || found.Rate != 80 ||
		!slices.Equal(rates, want) {
		t.Errorf("found %d/s, done %v, by trials of %v; want 80/s by %v: %s", found.Rate, found.Done, rates, want,
			found.Message)
	}
	if test.Status.Verdict != v1alpha1.VerdictPass || reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
		t.Errorf("verdict %s: %s", test.Status.Verdict, where(test.Status.Conditions))
	}
	// The figures of the test are those of the rate that was found: a trial of two seconds.
	if sum := test.Status.Summary; sum == nil || sum.Requests != 160 {
		t.Errorf("the summary has %+v, want 160 requests", sum)
	}
	if len(test.Status.Anomalies) > 0 {
		t.Errorf("a search falls by itself, there are %d anomalies", len(test.Status.Anomalies))
	}
}

func TestSearchFindsTheHighestRate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startEngine()
		startOperator(p, spy{})
		p.create(newLoadTest("search", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			searchFor(8)(test) // 4 in each pod
			test.Spec.Pods.Count, test.Spec.Client.Connections = 2, 4
		}))
		test := p.testEnds("search", 4*time.Minute)
		checkFound(t, test)
	})
}

// The operator ends before it stores the third trial, between storing and sending it, and after the last evaluation;
// the search continues.
func TestSearchSurvivesACrash(t *testing.T) {
	t.Parallel()
	trials := func(w write, made, judged int) bool {
		test, ok := w.Object.(*v1alpha1.RedisLoadTest)
		if !ok || w.Verb != "patch-status" || test.Status.Search == nil || len(test.Status.Search.Trials) != made {
			return false
		}
		open := slices.IndexFunc(test.Status.Search.Trials, func(t v1alpha1.SearchTrial) bool { return t.Met == nil })
		return open == judged || open < 0 && judged == made
	}
	for name, dies := range map[string]func(die func()) spy{
		"before a trial is stored": func(die func()) spy {
			return spy{Before: func(w write) error {
				if trials(w, 3, 2) {
					die()
					return errDead
				}
				return nil
			}}
		},
		"before a trial is sent": func(die func()) spy {
			return spy{After: func(w write) {
				if trials(w, 3, 2) {
					die()
				}
			}}
		},
		"after the last is judged": func(die func()) spy {
			return spy{After: func(w write) {
				if test, ok := w.Object.(*v1alpha1.RedisLoadTest); ok && w.Verb == "patch-status" && test.Status.Search != nil &&
					test.Status.Search.Done {
					die()
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				p, t := w.place, w.t
				redis := w.startEngine()
				var died atomic.Bool
				starts := keepRunning(p, func(self func() *operator) spy {
					if died.Load() {
						return spy{}
					}
					return dies(func() {
						if died.CompareAndSwap(false, true) {
							self().Crash()
						}
					})
				})
				p.create(newLoadTest("search", redis.Address(), searchFor(8)))
				checkFound(t, p.testEnds("search", 4*time.Minute))
				if starts.Load() < 2 {
					t.Errorf("%d processes: nothing died", starts.Load())
				}
			})
		})
	}
}

// A search that the duration ends has no verdict.
func TestSearchEndedByDuration(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startEngine()
		startOperator(p, spy{})
		p.create(newLoadTest("short", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			searchFor(8)(test)
			test.Spec.Load.Duration = length(8 * time.Second)
		}))
		short := p.testEnds("short", time.Minute)
		if short.Status.Verdict != v1alpha1.VerdictInconclusive || short.Status.Search.Done ||
			!strings.Contains(where(short.Status.Conditions), "the load's duration") {
			t.Errorf("verdict %s, search %+v: %s", short.Status.Verdict, short.Status.Search, where(short.Status.Conditions))
		}
	})
}

// A fault cannot be measured with a load whose rate changes.
func TestFaultRefusesASearch(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("search", redis.address(), searchFor(8)))
		p.create(newFault("kill", "search", v1alpha1.FaultPodKill, nil))
		f := p.faultEnds("kill", time.Minute)
		if reason(f.Status.Conditions) != v1alpha1.ReasonInvalidSpec ||
			!strings.Contains(where(f.Status.Conditions), "searches for a rate") || f.Status.InjectedAt != nil {
			t.Errorf("a fault in a search: %s, want InvalidSpec", where(f.Status.Conditions))
		}
	})
}

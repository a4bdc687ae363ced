package redisloadtest_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// checkFound checks a completed search with the result 80 requests/s: each trial is evaluated once, and a repeated
// trial counts as one more.
func checkFound(t *testing.T, test *v1alpha1.RedisLoadTest) {
	t.Helper()
	found := test.Status.Search
	if found == nil {
		t.Fatalf("no search in the status: %s", operatortest.Where(test.Status.Conditions))
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
	if test.Status.Verdict != v1alpha1.VerdictPass ||
		operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
		t.Errorf("verdict %s: %s", test.Status.Verdict, operatortest.Where(test.Status.Conditions))
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
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartEngine()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("search", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			operatortest.SearchFor(8)(test) // 4 in each pod
			test.Spec.Pods.Count, test.Spec.Client.Connections = 2, 4
		}))
		test := p.TestEnds("search", 4*time.Minute)
		checkFound(t, test)
	})
}

// The operator ends before it stores the third trial, between storing and sending it, and after the last evaluation;
// the search continues.
func TestSearchSurvivesACrash(t *testing.T) {
	t.Parallel()
	trials := func(w operatortest.Write, made, judged int) bool {
		test, ok := w.Object.(*v1alpha1.RedisLoadTest)
		if !ok || w.Verb != "patch-status" || test.Status.Search == nil || len(test.Status.Search.Trials) != made {
			return false
		}
		open := slices.IndexFunc(test.Status.Search.Trials, func(t v1alpha1.SearchTrial) bool { return t.Met == nil })
		return open == judged || open < 0 && judged == made
	}
	for name, dies := range map[string]func(die func()) operatortest.Spy{
		"before a trial is stored": func(die func()) operatortest.Spy {
			return operatortest.Spy{Before: func(w operatortest.Write) error {
				if trials(w, 3, 2) {
					die()
					return operatortest.ErrDead
				}
				return nil
			}}
		},
		"before a trial is sent": func(die func()) operatortest.Spy {
			return operatortest.Spy{After: func(w operatortest.Write) {
				if trials(w, 3, 2) {
					die()
				}
			}}
		},
		"after the last is judged": func(die func()) operatortest.Spy {
			return operatortest.Spy{After: func(w operatortest.Write) {
				if test, ok := w.Object.(*v1alpha1.RedisLoadTest); ok && w.Verb == "patch-status" && test.Status.Search != nil &&
					test.Status.Search.Done {
					die()
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				p, t := w.Place, w.T
				redis := w.StartEngine()
				var died atomic.Bool
				starts := operatortest.KeepRunning(p, func(self func() *operatortest.Operator) operatortest.Spy {
					if died.Load() {
						return operatortest.Spy{}
					}
					return dies(func() {
						if died.CompareAndSwap(false, true) {
							self().Crash()
						}
					})
				})
				p.Create(operatortest.NewLoadTest("search", redis.Address(), operatortest.SearchFor(8)))
				checkFound(t, p.TestEnds("search", 4*time.Minute))
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
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		redis := w.StartEngine()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("short", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			operatortest.SearchFor(8)(test)
			test.Spec.Load.Duration = operatortest.Length(8 * time.Second)
		}))
		short := p.TestEnds("short", time.Minute)
		if short.Status.Verdict != v1alpha1.VerdictInconclusive || short.Status.Search.Done ||
			!strings.Contains(operatortest.Where(short.Status.Conditions), "the load's duration") {
			t.Errorf("verdict %s, search %+v: %s", short.Status.Verdict, short.Status.Search,
				operatortest.Where(short.Status.Conditions))
		}
	})
}

// A fault cannot be measured with a load whose rate changes.
func TestFaultRefusesASearch(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Create(operatortest.NewLoadTest("search", p.Redis.Address(), operatortest.SearchFor(8)))
		p.Create(operatortest.NewFault("kill", "search", v1alpha1.FaultPodKill, nil))
		f := p.FaultEnds("kill", time.Minute)
		if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonInvalidSpec ||
			!strings.Contains(operatortest.Where(f.Status.Conditions), "searches for a rate") || f.Status.InjectedAt != nil {
			t.Errorf("a fault in a search: %s, want InvalidSpec", operatortest.Where(f.Status.Conditions))
		}
	})
}

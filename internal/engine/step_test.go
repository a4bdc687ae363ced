package engine

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

func TestStepRefuses(t *testing.T) {
	p := testPlanFor(plan.Search{From: 100, To: 1000, Precision: 0.05, Trial: time.Second})
	r, err := New(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what, want string, at time.Duration, rate float64) {
		t.Helper()
		if err := r.Step(at, rate); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	refused("before the start", "not started", time.Second, 200)
	r.run.Start, r.loops = time.Now().Add(-time.Second), nil
	r.launched.Store(true)
	refused("past", "in the past", 900*time.Millisecond, 200)
	refused("too high", "not between", 2*time.Second, 1001)
	refused("negative", "not between", 2*time.Second, -1)
	refused("no number", "not between", 2*time.Second, math.NaN())
	refused("after the end", "after the end of the load", time.Minute, 200)
	take := func(at time.Duration, rate float64) {
		t.Helper()
		if err := r.Step(at, rate); err != nil {
			t.Error(err)
		}
	}
	take(3*time.Second, 200)
	take(3*time.Second, 200)
	refused("before the last", "before the previous step", 2*time.Second, 300)
	take(4*time.Second, 0)
	take(5*time.Second, 0) // it has already ended
	if got := r.run.Pacer.Load().Total; got != 100*3+200 {
		t.Errorf("%d arrivals, want 100/s for 3 s and 200/s for 1 s", got)
	}

	fixed := testPlanFor(plan.Search{})
	fixed.Shape.Search = nil
	if r, err = New(fixed, 0); err != nil {
		t.Fatal(err)
	}
	refused("a plan that does not search", "fixed rate", time.Second, 200)
}

func testPlanFor(s plan.Search) *plan.Plan {
	return &plan.Plan{
		Run: "r", Pods: 1, Interval: 100 * time.Millisecond, Target: plan.Target{Addresses: []string{"127.0.0.1:1"}},
		Client: plan.Client{
			Connections:    2,
			Pipeline:       1,
			DialTimeout:    time.Second,
			RequestTimeout: time.Second,
			Protocol:       3,
		},
		Shape: plan.Shape{Rate: 100, Duration: time.Minute, Search: &s},
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}},
			Keyspace: plan.Keyspace{Prefix: "k", Keys: 10, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 1, MaxBytes: 1},
		},
	}
}

package controllers

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// startEngine lets the load pods run the real load, to a Redis in memory. How a deployment looks would be asked over TCP: the plan names it.
func (w *world) startEngine() *memredis.Server {
	w.kubelet.Load = func(plan *load.Plan, pod int) (agent.Runner, error) {
		plan.Target.Topology = load.TopologyStandalone
		return load.New(plan, pod, load.WithDialer(w.network.Dial))
	}
	w.kubelet.Start()
	return memredis.Start(w.t, w.network, w.subnet+"2:6379", memredis.Options{})
}

// From the creation of a load test to its verdict with the real load in both pods: every request is made, and counted once.
func TestRunOfTheEngine(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startEngine()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			verifies(test)
			test.Spec.Pods.Count = 2
		}))
		test := w.testEnds("run", time.Minute)
		if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
			w.t.Fatalf("%s", where(test.Status.Conditions))
		}
		if got := test.Status.Summary; got.Requests != 400 || got.Errors != 0 {
			w.t.Errorf("%+v, want 400 requests and no error", got)
		}
		checkRecord(w.t, w.place, test, 400)
		checkNothingLost(w.t, test, 100)
	})
}

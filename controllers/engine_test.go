package controllers

import (
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// startEngine makes the load pods run the real load, against a Redis in memory. The plan names the topology, as
// detecting it needs TCP.
func (w *world) startEngine() *memredis.Server {
	w.kubelet.Load = func(p *plan.Plan, pod int) (agent.Runner, error) {
		p.Target.Topology = plan.TopologyStandalone
		// as cmd/redquake does
		return engine.New(p, pod, engine.WithDialer(w.network.Dial), engine.WithPatience(math.MaxInt64))
	}
	w.kubelet.Start()
	return memredis.Start(w.t, w.network, w.subnet+"2:6379", memredis.Options{})
}

// writes stores the statuses that an operator wrote.
type writes struct {
	mu   sync.Mutex
	list []write
}

func (w *writes) add(one write) {
	if one.Verb == "patch-status" {
		one.Object = one.Object.DeepCopyObject().(client.Object)
		w.mu.Lock()
		w.list = append(w.list, one)
		w.mu.Unlock()
	}
}

// moving returns the times of writes that changed figures only: no status or reason of a condition, and nothing that is
// set once.
func (w *writes) moving() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []time.Time
	before := ""
	for _, one := range w.list {
		test, ok := one.Object.(*v1alpha1.RedisLoadTest)
		if !ok {
			continue
		}
		mark := string(test.Status.Verdict) + strconv.FormatBool(test.Status.StartTime != nil) +
			strconv.Itoa(len(test.Status.Faults))
		for _, c := range test.Status.Conditions {
			mark += c.Type + string(c.Status) + c.Reason
		}
		if mark == before {
			found = append(found, one.At)
		}
		before = mark
	}
	return found
}

// From the creation of a load test to its verdict with the real load in both pods: every request is sent, and counted
// once.
func TestRunOfTheEngine(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startEngine()
		var written writes
		startOperator(w.place, spy{After: written.add})
		const rate, seconds = 400, 7
		w.create(newLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			verifies(test)
			test.Spec.Pods.Count = 2
			test.Spec.Load = v1alpha1.LoadShape{
				Rate:     new(int32(rate)),
				WarmUp:   length(time.Second),
				Duration: length(seconds * time.Second),
			}
		}))
		test := w.testEnds("run", time.Minute)
		if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.Verdict != v1alpha1.VerdictPass {
			w.t.Fatalf("%s, verdict %s", where(test.Status.Conditions), test.Status.Verdict)
		}
		if got := test.Status.Summary; got.Requests != rate*seconds || got.Errors != 0 ||
			number(w.t, string(got.Throughput)) != rate {
			w.t.Errorf("%+v, want %d requests and no error", got, rate*seconds)
		}
		if skew := test.Status.StartSkew; skew == nil || *skew != 0 {
			w.t.Errorf("start skew %v", skew)
		}
		checkRecord(w.t, w.place, test, rate*(seconds+1))
		checkNothingLost(w.t, test, rate*(seconds+1)/4)
		moving := written.moving()
		for i := 1; i < len(moving); i++ {
			if d := moving[i].Sub(moving[i-1]); d < 2*time.Second {
				w.t.Errorf("moving figures were written twice within %s", d)
			}
		}
		if len(moving) < 2 || len(moving) > seconds {
			w.t.Errorf("moving figures were written %d times in %d s", len(moving), seconds+1)
		}
	})
}

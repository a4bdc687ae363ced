package redisloadtest_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// writes stores the statuses that an operator wrote.
type writes struct {
	mu   sync.Mutex
	list []operatortest.Write
}

func (w *writes) add(one operatortest.Write) {
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
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartEngine()
		var written writes
		operatortest.StartOperator(w.Place, operatortest.Spy{After: written.add})
		const rate, seconds = 400, 7
		w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			operatortest.Verifies(test)
			test.Spec.Pods.Count = 2
			test.Spec.Load = v1alpha1.LoadShape{
				Rate:     new(int32(rate)),
				WarmUp:   operatortest.Length(time.Second),
				Duration: operatortest.Length(seconds * time.Second),
			}
		}))
		test := w.TestEnds("run", time.Minute)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
			test.Status.Verdict != v1alpha1.VerdictPass {
			w.T.Fatalf("%s, verdict %s", operatortest.Where(test.Status.Conditions), test.Status.Verdict)
		}
		if got := test.Status.Summary; got.Requests != rate*seconds || got.Errors != 0 ||
			operatortest.Number(w.T, string(got.Throughput)) != rate {
			w.T.Errorf("%+v, want %d requests and no error", got, rate*seconds)
		}
		if skew := test.Status.StartSkew; skew == nil || skew.Duration != 0 {
			w.T.Errorf("start skew %v", skew)
		}
		operatortest.CheckRecord(w.T, w.Place, test, rate*(seconds+1))
		operatortest.CheckNothingLost(w.T, test, rate*(seconds+1)/4)
		moving := written.moving()
		for i := 1; i < len(moving); i++ {
			if d := moving[i].Sub(moving[i-1]); d < 2*time.Second {
				w.T.Errorf("moving figures were written twice within %s", d)
			}
		}
		if len(moving) < 2 || len(moving) > seconds {
			w.T.Errorf("moving figures were written %d times in %d s", len(moving), seconds+1)
		}
	})
}

package redisfault_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// Three faults set the same setting, one after the other although they are due at the same time or while another one is
// active: the first in the queue comes first, and the setting has its old value in the end.
func TestOneFaultAtATime(t *testing.T) {
	t.Parallel()
	for _, between := range []time.Duration{0, 5 * time.Second} {
		t.Run(fmt.Sprintf("%s apart", between), func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
				names := []string{"first", "second", "third"}
				for i, name := range names {
					f := operatortest.HzFor(name, v1alpha1.ParameterValue(fmt.Sprint(100*(i+1))), 20*time.Second)
					f.Spec.Trigger.After = operatortest.Length(20*time.Second + time.Duration(i)*between)
					w.Create(f)
				}
				time.Sleep(40 * time.Second) // the first is active, or its revert is about to begin
				var waiting []string
				for _, name := range names {
					f := w.Fault(name)
					if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonWaitingForFault {
						continue
					}
					waiting = append(waiting, name)
					if f.Status.Waiting == nil ||
						!strings.Contains(operatortest.Where(f.Status.Conditions),
							"waiting for RedisFault "+f.Status.Waiting.For+", which acts on pod redis-0") || f.Status.StartTime != nil {
						t.Errorf("%s: %s, %+v", name, operatortest.Where(f.Status.Conditions), f.Status.Waiting)
					}
				}
				if len(waiting) != 2 {
					t.Errorf("%v wait, want two", waiting)
				}
				var last time.Time
				for _, name := range names {
					f := w.FaultEnds(name, 5*time.Minute)
					if f.Status.InjectedAt == nil || f.Status.RevertedAt == nil || f.Status.Holding != nil || f.Status.Waiting != nil {
						t.Fatalf("%s: %s, %+v", name, operatortest.Where(f.Status.Conditions), f.Status)
					}
					if between > 0 && f.Status.InjectedAt.Time.Before(last) {
						t.Errorf("%s was injected at %s, before the one ahead was reverted at %s", name, f.Status.InjectedAt, last)
					}
					if late := f.Status.InjectedAt.Sub(last); between > 0 && !last.IsZero() && late > 5*time.Second {
						t.Errorf("%s was injected %s after the one ahead was reverted", name, late)
					}
					last = f.Status.RevertedAt.Time
				}
				if hz := w.Redis.Hz(""); hz != "10" {
					t.Errorf("hz is %s in the end, want 10", hz)
				}
			})
		})
	}
}

// A fault that waits is not in the way of what it has nothing to do with, can be aborted, and ends at its deadline.
func TestWaitingFaultEnds(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.HzFor("holder", "50", 5*time.Minute))
		w.FaultHasReason("holder", time.Minute, v1alpha1.ReasonActive)
		w.Create(operatortest.HzFor("aborted", "60", 20*time.Second))
		overdue := operatortest.HzFor("overdue", "60", 20*time.Second)
		overdue.Spec.Deadline = operatortest.Length(2 * time.Minute)
		w.Create(overdue)
		w.FaultHasReason("aborted", time.Minute, v1alpha1.ReasonWaitingForFault)
		w.MustChange(operatortest.Change(w.Place, w.Fault("aborted"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		if f := w.FaultEnds("aborted", 10*time.Second); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonAborted {
			t.Errorf("aborted: %s", operatortest.Where(f.Status.Conditions))
		}
		f := w.FaultEnds("overdue", 3*time.Minute)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonDeadlineExceeded {
			t.Errorf("overdue: %s", operatortest.Where(f.Status.Conditions))
		}
	})
}

// The record of a fault that has waited holds its place in the queue until the fault acts: it may still have to give
// way.
func TestPlaceInTheQueueIsKeptByTheRecord(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		w.Kubelet.Start()
		var mu sync.Mutex
		var recorded *v1alpha1.WaitingFault
		operatortest.StartOperator(w.Place, operatortest.Spy{After: func(write operatortest.Write) {
			mu.Lock()
			defer mu.Unlock()
			if f, is := write.Object.(*v1alpha1.RedisFault); is && f.Name == "second" && f.Status.StartTime != nil &&
				f.Status.Targets[0].Attempts == 0 && recorded == nil {
				recorded = f.Status.Waiting.DeepCopy()
			}
		}})
		w.Create(operatortest.LongRun(redis.Address()))
		w.Create(operatortest.HzFor("first", "50", 20*time.Second))
		w.FaultHasReason("first", time.Minute, v1alpha1.ReasonActive)
		w.Create(operatortest.HzFor("second", "60", 20*time.Second))
		since := w.FaultHasReason("second", time.Minute, v1alpha1.ReasonWaitingForFault).Status.Waiting.Since
		if active := w.FaultHasReason("second", time.Minute, v1alpha1.ReasonActive); active.Status.Waiting != nil {
			t.Errorf("it acts, and waits: %+v", active.Status.Waiting)
		}
		mu.Lock()
		defer mu.Unlock()
		if recorded == nil || !recorded.Since.Equal(&since) || recorded.For != "" || len(recorded.Pods) > 0 {
			t.Errorf("the record has %+v, want since %s alone", recorded, since)
		}
	})
}

// Two operators act at the same time, as for some seconds after a change of the leader: nevertheless one fault at a
// time acts.
func TestOneFaultAtATimeWithTwoOperators(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		w.CreateLoad(operatortest.LongRun)
		for i := range 4 {
			w.Create(operatortest.HzFor(fmt.Sprint("fault-", i), v1alpha1.ParameterValue(fmt.Sprint(100+i)), 10*time.Second))
		}
		type span struct{ from, to time.Time }
		var spans []span
		for i := range 4 {
			f := w.FaultEnds(fmt.Sprint("fault-", i), 10*time.Minute)
			if f.Status.InjectedAt == nil || f.Status.RevertedAt == nil {
				t.Fatalf("%s: %s", f.Name, operatortest.Where(f.Status.Conditions))
			}
			one := span{f.Status.InjectedAt.Time, f.Status.RevertedAt.Time}
			for _, other := range spans {
				if one.from.Before(other.to) && other.from.Before(one.to) {
					t.Errorf("%s acted from %s to %s, another one from %s to %s", f.Name, one.from, one.to, other.from, other.to)
				}
			}
			spans = append(spans, one)
		}
		if hz := w.Redis.Hz(""); hz != "10" {
			t.Errorf("hz is %s in the end, want 10", hz)
		}
	})
}

// A fault that would be refused because of what another one has changed waits for that one instead: it meets the state
// from before.
func TestWaitsBeforeItChecksWhatAnotherHasChanged(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		set := func(fault, name string, value v1alpha1.ParameterValue) {
			f := operatortest.HzFor(fault, "", time.Minute)
			f.Spec.Action.Config.Parameters = map[string]v1alpha1.ParameterValue{name: value}
			w.Create(f)
		}
		set("first", "maxmemory-policy", "allkeys-lru")
		w.FaultHasReason("first", time.Minute, v1alpha1.ReasonActive)
		set("second", "maxmemory", "100mb") // refused with that policy: data would be evicted
		w.FaultHasReason("second", 10*time.Second, v1alpha1.ReasonWaitingForFault)
		first, second := w.FaultEnds("first", 5*time.Minute), w.FaultEnds("second", 5*time.Minute)
		if second.Status.InjectedAt == nil || second.Status.InjectedAt.Before(first.Status.RevertedAt) {
			t.Errorf("the second: %s, injected at %v, the first reverted at %v", operatortest.Where(second.Status.Conditions),
				second.Status.InjectedAt, first.Status.RevertedAt)
		}
	})
}

//go:build integration

package controllers

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// A process that is away for longer than the start lies ahead: stored, but never sent.
func TestRestartBetweenStoringAndSendingTheStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	var first *operator
	ready := make(chan struct{})
	first = startOperator(p, spy{After: func(w write) {
		<-ready
		if test, ok := w.Object.(*v1alpha1.RedisLoadTest); ok && test.Status.StartTime != nil {
			first.Crash()
		}
	}})
	close(ready)
	p.create(newLoadTest("run", redis.address(), nil))
	select {
	case <-first.Died():
	case <-time.After(20 * time.Second):
		t.Fatal("no start was stored")
	}
	stored := p.loadTest("run").Status.StartTime
	first.stop()
	time.Sleep(3 * time.Second)
	startOperator(p, spy{})
	test := p.testEnds("run", 30*time.Second)
	if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || !test.Status.StartTime.After(stored.Time) {
		t.Fatalf("%s; started at %v, first at %v", where(test.Status.Conditions), test.Status.StartTime, stored)
	}
	if got := test.Status.Summary; got.Requests < 398 || got.Requests > 402 {
		t.Errorf("%d requests, want 400", got.Requests)
	}
	checkRecord(t, p, test, 400)
}

// The operator restarts again and again during a run with a fault: one fault, one deleted pod, every request counted once.
func TestRestartsDuringAFault(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	starts := keepRunning(p, func(self func() *operator) spy {
		born := time.Now()
		life := 1500*time.Millisecond + time.Duration(born.UnixNano()%int64(time.Second))
		return spy{Before: func(write) error {
			if time.Since(born) > life {
				self().Crash()
				return errDead
			}
			return nil
		}}
	})
	const seconds = 34
	p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Load.Duration = length(seconds * time.Second) }))
	p.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) { f.Spec.Trigger.After = length(3 * time.Second) }))
	f := p.faultEnds("kill", 60*time.Second)
	checkImpact(t, f, redis.downTime())
	if deleted := redis.podsDeleted(); len(deleted) != 1 || len(f.Status.Targets) != 1 || deleted[0] != f.Status.Targets[0].UID {
		t.Errorf("pods deleted %v, recorded %+v", deleted, f.Status.Targets)
	}
	test := p.testEnds("run", 40*time.Second)
	if got := test.Status.Summary; got == nil || got.Requests < 200*seconds-4 || got.Requests > 200*seconds+4 {
		t.Errorf("%s: %+v, want %d requests", where(test.Status.Conditions), got, 200*seconds)
	}
	checkRecord(t, p, test, 200*seconds)
	t.Logf("%d processes", starts.Load())
	if starts.Load() < 4 {
		t.Errorf("only %d processes", starts.Load())
	}
}

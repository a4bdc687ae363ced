//go:build e2e

package e2e_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// TestOperatorRestarts deletes the operator's pod without grace at random moments of a run with a fault, one of them
// just after the fault stored its intent. The result must be the same as without: nothing lost, the fault injected
// once.
func TestOperatorRestarts(t *testing.T) {
	n := newNamespace(t, "restart")
	n.applyRedis(nil)
	before := n.redisPod()
	uids := n.followPod("redis-0")
	test := n.sampleLoad("checkout-cache", 2*time.Second, 2*time.Second, 5*time.Minute)
	fault := n.sampleKill("kill-primary", test.Name)
	recorded := n.whenRecorded(fault.Name)
	n.create(test)
	n.create(fault)

	n.waitLoadTest(test.Name, patience, v1alpha1.ReasonRampingUp, v1alpha1.ReasonWarmingUp, v1alpha1.ReasonRunning)
	pause := func(most time.Duration) {
		await.Pass(time.Duration(rand.Int64N(int64(most))), "the operator dies at a random instant")
	}
	pause(6 * time.Second)
	n.killOperator("before the injection")

	await.Chan(t, "the fault stores its intent", recorded)
	pause(60 * time.Millisecond) // the delete of the Redis pod takes a few milliseconds: before, during or after it
	n.killOperator("just after the fault stored its intent")

	n.eventually(patience, "the fault is injected", func() (bool, string) {
		return n.fault(fault.Name).Status.InjectedAt != nil, "not yet"
	})
	pause(6 * time.Second)
	n.killOperator("while recovery is watched")

	done := n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded)
	ended := n.endLoad(test.Name)

	n.checkPodKill(done, before)
	n.impactFigures("operatorRestarts", done.Status.Impact, nil)
	if got := uids(); len(got) != 2 || got[0] != string(before.UID) {
		t.Errorf("redis-0 was %d pods (%v), want 2: it must be replaced exactly once", len(got), got)
	}
	series := n.record(ended)
	n.sumsAgree(ended, series)
	n.recordIsWhole(ended, series)
	var runs []string
	for _, server := range series.Servers() {
		if !slices.Contains(runs, server.RunID) {
			runs = append(runs, server.RunID)
		}
	}
	if len(runs) != 2 {
		t.Errorf("the load found %d server processes, want 2: %v", len(runs), runs)
	}
	n.passes(ended)
	if a := ended.Status.LoadPods; a == nil || a.Desired != 2 || a.Lost != 0 {
		t.Errorf("load pods %+v, want 2 and none lost", a)
	}
	if pods := n.loadPods(test.Name); len(pods) > 2 {
		t.Errorf("there were %d load pods, want 2", len(pods))
	}
}

// killOperator deletes the operator's pod without grace and waits until another one leads, and returns since when, by
// the lease.
func (n *namespace) killOperator(when string) (leads time.Time) {
	n.Helper()
	pod, err := operatorPod(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	n.delete(pod, client.GracePeriodSeconds(0))
	at := time.Now()
	n.eventually(2*patience, "another operator leads", func() (bool, string) {
		since, err := leaderOtherThan(n.Context(), pod.Name)
		if err != nil {
			return false, err.Error()
		}
		leads = since
		return true, ""
	})
	n.Logf("operator killed %s; another led after %s", when, time.Since(at).Round(100*time.Millisecond))
	return leads
}

// followPod collects the uids of all pods that have a name, in the order in which they came, until the function is
// called.
func (n *namespace) followPod(name string) func() []string {
	n.Helper()
	ctx, stop := context.WithCancel(n.Context())
	w, err := cluster.Watch(ctx, &corev1.PodList{}, client.InNamespace(n.name), client.MatchingFields{
		"metadata.name": name,
	})
	if err != nil {
		n.Fatal(err)
	}
	var seen []string
	var done sync.WaitGroup
	done.Go(func() {
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && !slices.Contains(seen, string(pod.UID)) {
				seen = append(seen, string(pod.UID))
			}
		}
	})
	return func() []string {
		stop()
		done.Wait()
		return seen
	}
}

// whenRecorded is closed when a fault has stored its record.
func (n *namespace) whenRecorded(name string) <-chan struct{} {
	n.Helper()
	w, err := cluster.Watch(n.Context(), &v1alpha1.RedisFaultList{}, client.InNamespace(n.name))
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(w.Stop)
	recorded := make(chan struct{})
	go func() {
		for e := range w.ResultChan() {
			if f, ok := e.Object.(*v1alpha1.RedisFault); ok && e.Type != watch.Deleted && f.Name == name &&
				f.Status.StartTime != nil {
				close(recorded)
				return
			}
		}
	}()
	return recorded
}

//go:build integration

package controllers

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// writes keeps the statuses that an operator wrote.
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

// moving are the instants of writes that changed neither a condition's status or reason nor anything that is set once.
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
		mark := string(test.Status.Verdict) + strconv.FormatBool(test.Status.StartTime != nil) + strconv.Itoa(len(test.Status.Impacts))
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

// A run from creation to verdict: two pods, an open loop, every figure.
func TestCompleteRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	var written writes
	o := startOperator(p, spy{After: written.add})
	const rate, seconds = 400, 7
	p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		withPatience(test)
		test.Spec.Pods.Count = 2
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(rate)), WarmUp: length(time.Second), Duration: length(seconds * time.Second)}
		test.Spec.Workload.Keyspace.Prefill = true
		test.Spec.Objectives = &v1alpha1.Objectives{MinThroughput: new("300"), MaxErrorRate: new("1%"), MaxLatencyP99: length(time.Second)}
	}))
	waiting := p.testStands("run", 20*time.Second, v1alpha1.ReasonPreparing, v1alpha1.ReasonStarting, v1alpha1.ReasonRunning)
	if got := standingOf(t, waiting); got != status.InProgressStatus {
		t.Errorf("kstatus %s before the start", got)
	}
	running := p.testStands("run", 20*time.Second, v1alpha1.ReasonRunning)
	if got := standingOf(t, running); got != status.InProgressStatus {
		t.Errorf("kstatus %s during the run", got)
	}
	test := p.testEnds("run", 30*time.Second)
	st := &test.Status
	if got := standingOf(t, test); got != status.CurrentStatus || reason(st.Conditions) != v1alpha1.ReasonSucceeded {
		t.Fatalf("kstatus %s, %s", got, where(st.Conditions))
	}
	sum := st.Summary
	if sum == nil || sum.Latency == nil {
		t.Fatalf("summary %+v", sum)
	}
	if want := int64(rate * seconds); sum.Requests < want-rate*3/4 || sum.Requests > want+rate*3/4 || sum.Errors != 0 { // a stall at the end of warm-up moves some; all of it would be a second's
		t.Errorf("%d requests, %d errors, want %d and 0", sum.Requests, sum.Errors, want)
	}
	if tps := number(t, sum.Throughput); tps < rate*0.85 || tps > rate*1.15 {
		t.Errorf("throughput %s, want %d", sum.Throughput, rate)
	}
	if len(sum.Operations) != 2 || sum.Operations[0].Requests+sum.Operations[1].Requests != sum.Requests {
		t.Errorf("operations %+v", sum.Operations)
	}
	if len(st.Objectives) != 3 || !starved(st) && (st.Verdict != v1alpha1.VerdictPass || !meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionObjectivesMet)) {
		t.Errorf("verdict %s, objectives %+v", st.Verdict, st.Objectives)
	}
	if st.Bottleneck == nil || st.Bottleneck.Component == "" || st.Bottleneck.Evidence == "" {
		t.Errorf("bottleneck %+v", st.Bottleneck)
	} else {
		t.Logf("bottleneck %s: %s", st.Bottleneck.Component, st.Bottleneck.Evidence)
	}
	if st.Progress != "100%" || st.Agents == nil || st.Agents.Desired != 2 || st.Agents.Lost != 0 {
		t.Errorf("progress %s, agents %+v", st.Progress, st.Agents)
	}
	if st.Target == nil || st.Target.Server != "redis" || !strings.HasPrefix(st.Target.Version, "7.") || !slices.Equal(st.Target.Addresses, []string{redis.address()}) {
		t.Errorf("target %+v", st.Target)
	}
	if skew, err := time.ParseDuration(st.StartSkew); err != nil || skew > time.Second {
		t.Errorf("start skew %q", st.StartSkew)
	}
	if st.Redis == nil || st.Redis.Restarts != 0 || st.StartTime == nil || st.CompletionTime == nil || st.ObservedGeneration != test.Generation {
		t.Errorf("redis %+v, from %v to %v, generation %d", st.Redis, st.StartTime, st.CompletionTime, st.ObservedGeneration)
	}
	checkRecord(t, p, test, rate*(seconds+1))
	p.until("the load pods have ended", 10*time.Second, func() bool { return p.podsIn(corev1.PodSucceeded) == 2 }, func() string { return "" })
	if o.sessions.find(test.UID) != nil {
		t.Error("the session of a finished test is kept")
	}
	moving := written.moving()
	for i := 1; i < len(moving); i++ {
		if d := moving[i].Sub(moving[i-1]); d < statusEvery-100*time.Millisecond {
			t.Errorf("moving figures were written twice within %s", d)
		}
	}
	if len(moving) < 2 || len(moving) > seconds {
		t.Errorf("moving figures were written %d times in %d s", len(moving), seconds+1)
	}
	t.Logf("%d writes of the status, %d of them moving figures; skew %s ± %s", len(written.list), len(moving), st.StartSkew, st.ClockUncertainty)
}

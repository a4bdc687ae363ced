//go:build integration

package operator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// starved reports whether the load pods got too little CPU time. Then the verdict is Inconclusive.
func starved(st *v1alpha1.RedisLoadTestStatus) bool {
	return st.Verdict == v1alpha1.VerdictInconclusive && st.Bottleneck != nil &&
		string(st.Bottleneck.Component) == string(bottleneck.LoadGenerator)
}

// A run from creation to verdict: two pods, an open loop. TestRunOfTheEngine checks the accuracy of the figures.
func TestCompleteRun(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{}.OnAPIServer(t)
	const rate, seconds = 400, 7
	p.Create(operatortest.NewLoadTest("run", p.Redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		operatortest.WithTolerance(test)
		test.Spec.Pods.Count = 2
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:     new(int32(rate)),
			WarmUp:   operatortest.Length(time.Second),
			Duration: operatortest.Length(seconds * time.Second),
		}
		test.Spec.Workload.Keyspace.Prefill = true
		test.Spec.Objectives = &v1alpha1.Objectives{
			MinThroughput: new("1"),
			MaxErrorRate:  new("1%"),
			MaxLatencyP99: operatortest.Length(time.Minute),
		}
	}))
	waiting := p.TestHasReason("run", time.Minute, v1alpha1.ReasonPreparing, v1alpha1.ReasonStarting,
		v1alpha1.ReasonRunning)
	if got := operatortest.KstatusOf(t, waiting); got != status.InProgressStatus {
		t.Errorf("kstatus %s before the start", got)
	}
	running := p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	if got := operatortest.KstatusOf(t, running); got != status.InProgressStatus {
		t.Errorf("kstatus %s during the run", got)
	}
	test := p.TestEnds("run", 2*time.Minute)
	st := &test.Status
	if got := operatortest.KstatusOf(t, test); got != status.CurrentStatus ||
		operatortest.Reason(st.Conditions) != v1alpha1.ReasonSucceeded {
		t.Fatalf("kstatus %s, %s", got, operatortest.Where(st.Conditions))
	}
	sum := st.Summary
	if sum == nil || sum.Latency == nil {
		t.Fatalf("summary %+v", sum)
	}
	if sum.Requests == 0 || sum.Requests > rate*(seconds+1) || sum.Errors != 0 ||
		operatortest.Number(t, string(sum.Throughput)) <= 0 {
		t.Errorf("%d requests, %d errors, %s/s", sum.Requests, sum.Errors, sum.Throughput)
	}
	if len(sum.Operations) != 2 || sum.Operations[0].Requests+sum.Operations[1].Requests != sum.Requests {
		t.Errorf("operations %+v", sum.Operations)
	}
	if len(st.Objectives) != 3 ||
		!starved(st) && (st.Verdict != v1alpha1.VerdictPass ||
			!meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionObjectivesMet)) {
		t.Errorf("verdict %s, objectives %+v", st.Verdict, st.Objectives)
	}
	if st.Bottleneck == nil || st.Bottleneck.Component == "" || st.Bottleneck.Evidence == "" {
		t.Errorf("bottleneck %+v", st.Bottleneck)
	} else {
		t.Logf("bottleneck %s: %s", st.Bottleneck.Component, st.Bottleneck.Evidence)
	}
	if st.Progress != 100 || st.LoadPods == nil || st.LoadPods.Desired != 2 || st.LoadPods.Lost != 0 {
		t.Errorf("progress %d%%, load pods %+v", st.Progress, st.LoadPods)
	}
	if st.Target == nil || st.Target.Server != "redis" || !strings.HasPrefix(st.Target.Version, "7.") ||
		!slices.Equal(st.Target.Addresses, []string{p.Redis.Address()}) {
		t.Errorf("target %+v", st.Target)
	}
	if st.StartSkew == nil || st.StartSkew.Duration > 10*time.Second || st.ClockUncertainty == nil {
		t.Fatalf("start skew %v, clock uncertainty %v", st.StartSkew, st.ClockUncertainty)
	}
	if st.Redis == nil || st.Redis.Restarts != 0 || st.StartTime == nil || st.CompletionTime == nil ||
		st.ObservedGeneration != test.Generation {
		t.Errorf("redis %+v, from %v to %v, generation %d", st.Redis, st.StartTime, st.CompletionTime, st.ObservedGeneration)
	}
	operatortest.CheckRecord(t, p, test, rate*(seconds+1))
	p.Until("the load pods have ended", time.Minute, func() bool { return p.PodsIn(corev1.PodSucceeded) == 2 },
		func() string { return "" })
	if p.Operator.Sessions.Find(test.UID) != nil {
		t.Error("the session of a finished test is kept")
	}
	t.Logf("skew %s ± %s", st.StartSkew.Duration, st.ClockUncertainty.Duration)
}

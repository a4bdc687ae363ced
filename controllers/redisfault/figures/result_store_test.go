package figures

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// The result is stored when the fault has settled. A process that has not measured the fault completes it when the
// fault ends.
func TestResultOfAFaultIsCompleted(t *testing.T) {
	start := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	injected, settled := metav1.NewMicroTime(start.Add(20*time.Second)), metav1.NewMicroTime(start.Add(50*time.Second))
	test := &v1alpha1.RedisLoadTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "load"},
		Status:     v1alpha1.RedisLoadTestStatus{StartTime: &start},
	}
	cluster := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).
		WithObjects(children.ResultsConfigMap(test, []byte("record"))).Build()
	scopeOf := func(settledBefore *metav1.MicroTime) *scope.Fault {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kill", UID: "fault"}}
		f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxLostWrites: new(int64(1))}
		f.Status = v1alpha1.RedisFaultStatus{InjectedAt: &injected, SettledTime: settledBefore}
		s := &scope.Fault{Fault: f, Before: f.DeepCopy(), Test: test}
		f.Status.SettledTime = &settled
		return s
	}
	named := func(name string) *result.Fault {
		t.Helper()
		var kept corev1.ConfigMap
		if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: children.ResultsName("run")},
			&kept); err != nil {
			t.Fatal(err)
		}
		all, err := children.ResultsIn(&kept)
		if err != nil || string(kept.BinaryData[children.ResultsSeriesKey]) != "record" {
			t.Fatalf("%v, record %q", err, kept.BinaryData[children.ResultsSeriesKey])
		}
		return result.FaultWith(all.Faults, "fault", name)
	}
	stored := func() *result.Fault { return named("kill") }
	store := func(s *scope.Fault, o state.Outcome) *result.Fault {
		t.Helper()
		if err := StoreResult(t.Context(), s, cluster, o); err != nil {
			t.Fatal(err)
		}
		return stored()
	}
	lost := &result.Losses{Count: result.Count{AtLeast: 3, AtMost: 3}, First: 19 * time.Second, Last: 21 * time.Second}
	ending := func() *scope.Fault { // of a process that has not measured it
		s := scopeOf(&settled)
		s.Losses = lost
		s.Judgement = &verdict.Judgement{Verdict: v1alpha1.VerdictFail, Message: "maxLostWrites is 3, limit 1"}
		return s
	}

	if f := store(ending(), state.Outcome{Ended: true}); f != nil {
		t.Errorf("without figures: %+v", f)
	}
	late := ending() // of a fault that had settled before there was a record
	late.Fault.Name, late.Fault.Status.Impact = "late", digest.Impact(result.NewFault(&impact.Impact{BaselineRate: 100},
		result.FaultInput{}))
	store(late, state.Outcome{Ended: true})
	if f := named("late"); f == nil || f.Verdict != "Fail" || f.LostWrites().String() != "3" {
		t.Errorf("of the status: %+v", f)
	}
	measured := scopeOf(nil)
	measured.Measured = resultOf(measured,
		&impact.Impact{
			Outage:       impact.Outage{Bounded: durations.Exactly(2 * time.Second), Of: impact.Load},
			Recovered:    true,
			RecoveryTime: durations.Exactly(3 * time.Second),
		}, 20*time.Second)
	if f := store(measured, state.Outcome{}); f == nil || f.Outage().Value != 2*time.Second ||
		f.Verdict != "" ||
		f.Lost != nil {
		t.Errorf("settled: %+v", f)
	}
	for range 2 { // the process may end before the status is written
		f := store(ending(), state.Outcome{Ended: true})
		if f == nil || f.Outage().Value != 2*time.Second || f.Verdict != "Fail" || f.Why == "" ||
			f.LostWrites().String() != "3" || *f.Lost.First != -result.Seconds(time.Second) || len(f.Objectives) != 1 {
			t.Errorf("ended: %+v", f)
		}
	}
	setting := scopeOf(nil)
	setting.Fault.Name, setting.Seen.Setting, setting.Measured = "always", true, measured.Measured
	if store(setting, state.Outcome{}); stored() == nil || stored().Verdict != "Fail" {
		t.Error("a setting has stored a result")
	}
}

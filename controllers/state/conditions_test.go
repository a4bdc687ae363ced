package state

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
)

// The status that Flux and kubectl plugins compute from every summary, for both kinds.
func TestSummaryForKstatus(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   Summary
		want status.Status
	}{
		{"pending", Summary{Reason: v1alpha1.ReasonPending}, status.InProgressStatus},
		{"running", Summary{Reason: v1alpha1.ReasonRunning, Message: "1 load pod runs"}, status.InProgressStatus},
		{"complete", Summary{Complete: true, Reason: v1alpha1.ReasonSucceeded}, status.CurrentStatus},
		{"aborted", Summary{Complete: true, Reason: v1alpha1.ReasonAborted}, status.CurrentStatus},
		{"failed", Summary{Failed: true, Reason: v1alpha1.ReasonNoTarget}, status.FailedStatus},
		{"suspended", Summary{Suspended: true, Reason: v1alpha1.ReasonSuspended}, status.CurrentStatus},
	} {
		t.Run(tc.name, func(t *testing.T) {
			test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}}
			SetSummary(&test.Status.Conditions, 3, tc.at)
			test.Status.ObservedGeneration = 3
			fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 3}}
			SetSummary(&fault.Status.Conditions, 3, tc.at)
			fault.Status.ObservedGeneration = 3
			for kind, object := range map[string]any{"RedisLoadTest": test, "RedisFault": fault} {
				if got := compute(t, object); got != tc.want {
					t.Errorf("%s is %s to kstatus, want %s", kind, got, tc.want)
				}
			}
			for _, c := range test.Status.Conditions {
				reason := tc.at.Reason
				if c.Type == v1alpha1.ConditionSuspended && c.Status == metav1.ConditionFalse {
					reason = v1alpha1.ReasonNotSuspended
				}
				if c.Reason != reason || c.ObservedGeneration != 3 {
					t.Errorf("condition %+v", c)
				}
			}
			// A generation that was not reconciled yet is in progress, whatever its conditions.
			test.Generation = 4
			if got := compute(t, test); got != status.InProgressStatus {
				t.Errorf("a newer generation is %s to kstatus", got)
			}
		})
	}
}

func compute(t *testing.T, object any) status.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(v1alpha1.GroupVersion.String())
	u.SetKind("Any")
	result, err := status.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// The transition time changes only with the status, and long messages are truncated.
func TestSetCondition(t *testing.T) {
	var conditions []metav1.Condition
	SetCondition(&conditions, 1, "Complete", metav1.ConditionFalse, "Running", "a")
	first := metav1.Date(2026, 1, 2, 3, 4, 5, 0, metav1.Now().Location())
	conditions[0].LastTransitionTime = first
	SetCondition(&conditions, 2, "Complete", metav1.ConditionFalse, "Running", strings.Repeat("x", 5000))
	c := meta.FindStatusCondition(conditions, "Complete")
	if !c.LastTransitionTime.Equal(&first) || c.ObservedGeneration != 2 || len(c.Message) > 4096 {
		t.Errorf("since %s, generation %d, %d bytes", c.LastTransitionTime, c.ObservedGeneration, len(c.Message))
	}
	SetCondition(&conditions, 2, "Complete", metav1.ConditionTrue, "Succeeded", "b")
	if c := meta.FindStatusCondition(conditions, "Complete"); c.LastTransitionTime.Equal(&first) || len(conditions) != 1 {
		t.Errorf("a new status keeps the old instant: %+v", conditions)
	}
}

// Complete is new if its status or its reason has changed, not if only its message has.
func TestChanged(t *testing.T) {
	running := Summary{Reason: v1alpha1.ReasonRunning, Message: "1 load pod runs"}
	var before []metav1.Condition
	SetSummary(&before, 1, running)
	for name, tc := range map[string]struct {
		before []metav1.Condition
		after  Summary
		want   bool
	}{
		"first":       {nil, running, true},
		"same":        {before, running, false},
		"new message": {before, Summary{Reason: v1alpha1.ReasonRunning, Message: "2 load pods run"}, false},
		"new reason":  {before, Summary{Reason: v1alpha1.ReasonPending}, true},
		"new status":  {before, Summary{Complete: true, Reason: v1alpha1.ReasonRunning}, true},
	} {
		var after []metav1.Condition
		SetSummary(&after, 1, tc.after)
		if got := Changed(tc.before, after, v1alpha1.ConditionComplete); (got != nil) != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

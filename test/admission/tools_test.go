//go:build integration

package admission_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// conditions are set by their type; those not named are False, as the controllers keep all of them present.
type conditions map[string]metav1.ConditionStatus

// The types of an object that runs once, and of a schedule.
var (
	ofRun = []string{
		v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended,
		v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	}

	ofASchedule = []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionSuspended, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
		v1alpha1.ConditionRegressed, v1alpha1.ConditionNotified,
	}
)

func (c conditions) list(types []string) []metav1.Condition {
	var list []metav1.Condition
	for _, typ := range types {
		value, ok := c[typ]
		if !ok {
			value = metav1.ConditionFalse
		}
		meta.SetStatusCondition(&list, metav1.Condition{Type: typ, Status: value, Reason: "Because", ObservedGeneration: 1})
	}
	return list
}

// What Flux and other readers of kstatus conclude from each state of an object that runs once.
func TestStatusContract(t *testing.T) {
	const yes = metav1.ConditionTrue
	tests := []struct {
		name     string
		observed int64 // generation; 0 = no status was written yet
		has      conditions
		want     status.Status
	}{
		{"fresh", 0, nil, status.InProgressStatus},
		{"running", 1, conditions{v1alpha1.ConditionReconciling: yes}, status.InProgressStatus},
		{"complete", 1, conditions{v1alpha1.ConditionComplete: yes}, status.CurrentStatus},
		{"failed", 1, conditions{v1alpha1.ConditionFailed: yes, v1alpha1.ConditionStalled: yes}, status.FailedStatus},
		{"suspended", 1, conditions{v1alpha1.ConditionSuspended: yes}, status.CurrentStatus},
		{
			"queued",
			1,
			conditions{v1alpha1.ConditionSuspended: yes, v1alpha1.ConditionReconciling: yes},
			status.InProgressStatus,
		},
		// Why Reconciling and Stalled exist: without them kstatus reports running and failed objects as Current.
		{"running without reconciling", 1, conditions{}, status.CurrentStatus},
		{"failed without stalled", 1, conditions{v1alpha1.ConditionFailed: yes}, status.CurrentStatus},
	}
	for _, kind := range []string{"RedisLoadTest", "RedisFault", "RedisExperiment"} {
		for _, test := range tests {
			t.Run(kind+"/"+test.name, func(t *testing.T) {
				o := created(t, object(t, kind, "kstatus-"+name(t), `{}`))
				if test.observed > 0 {
					writeConditions(t, o, test.observed, test.has.list(ofRun))
				}
				if got := computed(t, o); got != test.want {
					t.Errorf("kstatus is %s, want %s", got, test.want)
				}
			})
		}
		t.Run(kind+"/changed since", func(t *testing.T) {
			o := created(t, object(t, kind, "kstatus-changed", `{}`))
			writeConditions(t, o, 1, conditions{v1alpha1.ConditionSuspended: yes}.list(ofRun))
			if err := patchSpec(t, o, `{suspend: true}`); err != nil {
				t.Fatal(err)
			}
			if got := computed(t, o); got != status.InProgressStatus {
				t.Errorf("kstatus is %s, want InProgress: the operator has not observed the change", got)
			}
		})
	}
}

// A schedule is current also while a run is under way, and after one that failed: it is what its manifest says.
func TestStatusContractOfSchedules(t *testing.T) {
	const yes = metav1.ConditionTrue
	tests := []struct {
		name     string
		observed int64 // generation; 0 = no status was written yet
		has      conditions
		want     status.Status
	}{
		{"fresh", 0, nil, status.InProgressStatus},
		{"ready", 1, conditions{v1alpha1.ConditionReady: yes}, status.CurrentStatus},
		{"suspended", 1, conditions{v1alpha1.ConditionReady: yes, v1alpha1.ConditionSuspended: yes}, status.CurrentStatus},
		{"regressed", 1, conditions{v1alpha1.ConditionReady: yes, v1alpha1.ConditionRegressed: yes}, status.CurrentStatus},
		{"tries again", 1, conditions{v1alpha1.ConditionReconciling: yes}, status.InProgressStatus},
		{"invalid", 1, conditions{v1alpha1.ConditionStalled: yes}, status.FailedStatus},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := created(t, object(t, "RedisExperimentSchedule", name(t), `{}`))
			if test.observed > 0 {
				writeConditions(t, o, test.observed, test.has.list(ofASchedule))
			}
			if got := computed(t, o); got != test.want {
				t.Errorf("kstatus is %s, want %s", got, test.want)
			}
		})
	}
}

func writeConditions(t *testing.T, o *unstructured.Unstructured, observed int64, list []metav1.Condition) {
	t.Helper()
	if err := patchStatus(t, o, text(t, map[string]any{"observedGeneration": observed, "conditions": list})); err != nil {
		t.Fatal(err)
	}
}

// computed is kstatus's conclusion from the object as it is stored.
func computed(t *testing.T, o *unstructured.Unstructured) status.Status {
	t.Helper()
	stored := o.DeepCopy()
	if err := strict.Get(t.Context(), client.ObjectKeyFromObject(o), stored); err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(stored)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// What `kubectl get` prints, as the API server makes it from the status.
func TestColumns(t *testing.T) {
	tests := []struct {
		kind, resource, status string
		want                   map[string]string
	}{
		{"RedisLoadTest", "redisloadtests", `
display: {progress: 62%, tps: "3012.4", p99: 0.41ms, errors: 0.16%, trend: "▂███▁████████▇██████",
  faults: kill-primary Pass, lostWrites: "7"}
progress: 62
verdict: Fail
target: {version: 7.0.15}
bottleneck: {component: RedisMainThread}
summary: {requests: 10, errors: 3, failed: 1, unknown: 1, dropped: 1, throughput: "3012.4", lostWrites: 7, latency: {p99: 410us}}
conditions: [{type: Failed, status: "False", reason: Other, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: Complete, status: "False", reason: Running, message: under way, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, map[string]string{
			"Name": "checkout-cache", "Status": "Running", "Progress": "62%", "TPS": "3012.4", "P99": "0.41ms",
			"Errors": "0.16%", "Trend": "▂███▁████████▇██████",
			"Verdict": "Fail", "Bottleneck": "RedisMainThread", "Faults": "kill-primary Pass", "LostWrites": "7",
			"Redis": "7.0.15", "Message": "under way",
		}},
		{"RedisFault", "redisfaults", `
loadTest: checkout-cache
effect: Confirmed
verdict: Pass
display: {target: redis-0, dip: 99.7%, outage: 2.31s, recovery: 4.12s, whileActive: "throughput -12.5%, p99 +340%", lostWrites: 3-7}
targets: [{pod: redis-0, uid: a}]
impact: {dip: {value: "0.997", of: All}, outage: {of: Load, value: 2.31s, atLeast: 2.31s, atMost: 2.31s},
  recovered: true, lostRequests: 1, errors: 1, lostWritesAtLeast: 3, lostWritesAtMost: 7}
conditions: [{type: Complete, status: "True", reason: Succeeded, message: done, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, map[string]string{
			"Name": "checkout-cache", "Type": "PodKill", "Status": "Succeeded", "Target": "redis-0", "Effect": "Confirmed",
			"Dip":    "99.7%",
			"Outage": "2.31s", "Recovery": "4.12s", "LostWrites": "3-7", "Verdict": "Pass",
			"WhileActive": "throughput -12.5%, p99 +340%", "LoadTest": "checkout-cache", "Message": "done",
		}},
		{"RedisExperiment", "redisexperiments", `
display: {progress: 1999/2000, cells: "128", worse: 300/508, next: "appendfsync=everysec,users=10"}
verdict: Inconclusive
expectedEnd: "2026-01-01T00:00:00Z"
conditions: [{type: Regressed, status: "True", reason: Regressed, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: Complete, status: "False", reason: ApplyingSettings, message: "appendfsync=everysec,users=10",
    lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, map[string]string{
			"Name": "checkout-cache", "Status": "ApplyingSettings", "Progress": "1999/2000", "Cells": "128", "Worse": "300/508",
			"Verdict": "Inconclusive",
			"Next":    "appendfsync=everysec,users=10", "Regressed": "True", "ExpectedEnd": "2026-01-01T00:00:00Z",
			"Message": "appendfsync=everysec,users=10",
		}},
		{"RedisExperimentSchedule", "redisexperimentschedules", `
display: {last: "2026-01-01T03:00+01:00", next: "2026-01-02T03:00+01:00"}
verdict: Inconclusive
conditions: [{type: Regressed, status: "False", reason: NotRegressed, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: Ready, status: "False", reason: ObjectNotOwned, message: it is of somebody else, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, map[string]string{
			"Name": "nightly", "Schedule": "@daily", "Status": "ObjectNotOwned", "Last": "2026-01-01T03:00+01:00",
			"Verdict": "Inconclusive", "Regressed": "False",
			"Next": "2026-01-02T03:00+01:00", "Message": "it is of somebody else",
		}},
	}
	for _, test := range tests {
		t.Run(test.kind, func(t *testing.T) {
			o := created(t, object(t, test.kind, test.want["Name"], `{}`))
			if err := patchStatus(t, o, test.status); err != nil {
				t.Fatal(err)
			}
			got, width := row(t, test.resource, o.GetName())
			if width > 120 {
				t.Errorf("kubectl get prints lines of %d characters, want at most 120", width)
			}
			if age := got["Age"]; age == "" || age == "<nil>" {
				t.Errorf("Age is %q", age)
			}
			delete(got, "Age")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

// columnGap is how many spaces kubectl writes between columns.
const columnGap = 3

// row gets an object as kubectl does: as a row of a table. width is the length of its line in kubectl get without -o
// wide.
func row(t *testing.T, resource, name string) (cells map[string]string, width int) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := clients.RESTClient().Get().
		AbsPath("/apis", v1alpha1.GroupVersion.String(), "namespaces", "default", resource, name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows: %s", len(table.Rows), raw)
	}
	cells = map[string]string{}
	for i, c := range table.ColumnDefinitions {
		cells[c.Name] = fmt.Sprint(table.Rows[0].Cells[i])
		if c.Priority == 0 {
			width += max(len(c.Name), utf8.RuneCountInString(cells[c.Name])) + columnGap
		}
	}
	return cells, width - columnGap
}

// The fields that a list can be narrowed by, without reading all objects.
func TestSelectableFields(t *testing.T) {
	pod := created(t, object(t, "RedisFault", "select-pod", `{}`))
	created(t, object(t, "RedisFault", "select-process", `{action: {type: ProcessCrash}}`))
	await.Until(t, "select-pod alone is selected", func() error { // the watch cache may lag behind the writes
		var list v1alpha1.RedisFaultList
		if err := strict.List(t.Context(), &list, client.InNamespace("default"), client.MatchingFields{
			"spec.action.type": "PodKill",
		}); err != nil {
			t.Fatal(err)
		}
		return await.That(len(list.Items) == 1 && list.Items[0].Name == pod.GetName(), "%d objects are selected",
			len(list.Items))
	})
}

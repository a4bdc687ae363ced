// Package clitest has what tests of commands have in common: saved runs and experiments, and an API
// server that serves them.
package clitest

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Start is when the run of Record began.
var Start = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)

// Record is the record of a run of 30 s with 10 successes per second.
func Record(t *testing.T) []byte {
	t.Helper()
	series := merged.New("uid", Start, time.Second, []string{"set"}, 1)
	for i := range int64(30) {
		begin := i * int64(time.Second)
		iv := &record.Interval{
			Index:      i,
			Pods:       1,
			Ops:        make([]record.Op, 1),
			FirstOK:    begin,
			LastOK:     begin + int64(time.Second) - 1,
			FirstError: -1,
			LastError:  -1,
		}
		iv.Ops[0].OK = 10
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	series.Finish(0)
	data, err := series.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// RunObjects are the ConfigMap and the faults of a run: a setting of it, one on it, one before it,
// one on another test, one that was not injected.
func RunObjects(t *testing.T) (results any, faults []any) {
	t.Helper()
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: "shop"}}
	fault := func(name, test string, at time.Duration) any {
		f := &v1alpha1.RedisFault{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
			Spec:       v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: "PodKill"}},
		}
		f.APIVersion, f.Kind = v1alpha1.GroupVersion.String(), "RedisFault"
		f.Status = v1alpha1.RedisFaultStatus{LoadTest: test, Verdict: v1alpha1.VerdictPass}
		if at != 0 {
			f.Status.InjectedAt = new(metav1.NewMicroTime(Start.Add(at)))
			f.Status.Impact = &v1alpha1.Impact{
				Recovered: true,
				RecoveryTime: &v1alpha1.BoundedDuration{
					Value:   v1alpha1.DurationOf(2 * time.Second),
					AtLeast: v1alpha1.DurationOf(2 * time.Second),
					AtMost:  v1alpha1.DurationOf(2 * time.Second),
				},
				Outage: &v1alpha1.Outage{
					BoundedDuration: v1alpha1.BoundedDuration{
						Value:   v1alpha1.DurationOf(1_500 * time.Millisecond),
						AtLeast: v1alpha1.DurationOf(1_450 * time.Millisecond),
						AtMost:  v1alpha1.DurationOf(1_520 * time.Millisecond),
					},
					Of:    v1alpha1.OutageOfShard,
					Shard: new(int32(0)),
				},
			}
		}
		return f
	}
	setting := fault("setting", "checkout", 12*time.Second).(*v1alpha1.RedisFault)
	setting.Spec.Setting = true
	return children.ResultsConfigMap(test, Record(t)), []any{
		setting, fault("kill", "checkout", 12*time.Second), fault("earlier", "checkout", -time.Hour),
		fault("elsewhere", "other", 12*time.Second), fault("never", "checkout", 0),
	}
}

// AsYAML are objects as YAML documents.
func AsYAML(t *testing.T, objects ...any) string {
	t.Helper()
	var documents []string
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "---\n")
}

// AsList is a List, as kubectl saves several objects.
func AsList(items ...any) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "List",
		"items":      items,
	}
}

// Condition is the only condition of an object, with the reason Because.
func Condition(kind string, status metav1.ConditionStatus, message string) []metav1.Condition {
	return []metav1.Condition{{
		Type:    kind,
		Status:  status,
		Reason:  "Because",
		Message: message,
	}}
}

package controllers

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record/merged"
)

// kstatusOf computes the status of an object as Flux and kubectl plugins do.
func kstatusOf(t *testing.T, object client.Object) status.Status {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Any"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// checkRecord reads the stored record as `redquake report` would.
func checkRecord(t *testing.T, p *place, test *v1alpha1.RedisLoadTest, due uint64) {
	t.Helper()
	if test.Status.Results == nil || test.Status.Results.ConfigMap != children.ResultsName(test.Name) {
		t.Fatalf("results %+v", test.Status.Results)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: test.Status.Results.ConfigMap}}
	if !p.read(stored) {
		t.Fatal("there is no record")
	}
	series, err := merged.Decode(stored.BinaryData[children.ResultsSeriesKey])
	if err != nil {
		t.Fatal(err)
	}
	var all uint64
	for i := range series.Len() {
		for _, op := range series.At(i).Ops {
			all += op.Due
		}
	}
	if !series.Ended() || all != due {
		t.Errorf("the record has ended: %v; %d requests due, want %d", series.Ended(), all, due)
	}
	if d := series.Start.Sub(test.Status.StartTime.Time).Abs(); d > 0 {
		t.Errorf("the record's start is %s off status.startTime", d)
	}
}

// podsIn counts the load pods in one of these phases; without any, all load pods.
func (p *place) podsIn(phases ...corev1.PodPhase) int {
	p.t.Helper()
	var pods corev1.PodList
	if err := p.client.List(p.t.Context(), &pods, client.InNamespace(p.namespace), client.HasLabels{
		v1alpha1.LabelLoadTest,
	}); err != nil {
		p.t.Fatal(err)
	}
	n := 0
	for i := range pods.Items {
		if len(phases) == 0 || slices.Contains(phases, pods.Items[i].Status.Phase) {
			n++
		}
	}
	return n
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		t.Errorf("%q is no number", text)
	}
	return n
}

package operatortest

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result/document"
)

// KstatusOf computes the status of an object as Flux and kubectl plugins do.
func KstatusOf(t *testing.T, object client.Object) status.Status {
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

// CheckRecord reads the stored record as `redquake report` would.
func CheckRecord(t *testing.T, p *Place, test *v1alpha1.RedisLoadTest, due uint64) {
	t.Helper()
	if test.Status.Results == nil || test.Status.Results.ConfigMap != children.ResultsName(test.Name) {
		t.Fatalf("results %+v", test.Status.Results)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: test.Status.Results.ConfigMap}}
	if !p.Read(stored) {
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
	d := series.Start.Sub(test.Status.StartTime.Time).Abs()
	if d > 0 {
		t.Errorf("the record's start is %s off status.startTime", d)
	}
}

// PodsIn counts the load pods in one of these phases; without any, all load pods.
func (p *Place) PodsIn(phases ...corev1.PodPhase) int {
	p.T.Helper()
	var pods corev1.PodList
	err := p.Client.List(p.T.Context(), &pods, client.InNamespace(p.Namespace), client.HasLabels{
		v1alpha1.LabelLoadTest,
	})
	if err != nil {
		p.T.Fatal(err)
	}
	n := 0
	for i := range pods.Items {
		if len(phases) == 0 || slices.Contains(phases, pods.Items[i].Status.Phase) {
			n++
		}
	}
	return n
}

// Number is the value of a figure, without the sign of a percentage.
func Number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		t.Errorf("%q is no number", text)
	}
	return n
}

// RecordOf waits for the record of a load test.
func (p *Place) RecordOf(test string, in *subject.Input) *corev1.ConfigMap {
	p.T.Helper()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.ResultsName(test)}}
	p.Until("the record is stored", time.Minute, func() bool { return p.Read(stored) }, func() string {
		return ""
	})
	series, err := merged.Decode(stored.BinaryData[children.ResultsSeriesKey])
	if err != nil {
		p.T.Fatal(err)
	}
	in.Series = series
	in.Results, err = document.KeptFaults(stored.BinaryData[children.ResultsFaultsKey])
	if err != nil {
		p.T.Fatal(err)
	}
	text, ok := stored.Data[children.ResultsDocumentKey]
	if ok {
		if in.Load, err = document.DecodeLoad([]byte(text)); err != nil {
			p.T.Fatal(err)
		}
	}
	return stored
}

// KeepRun writes what the cluster keeps of a run, as kubectl get -o yaml would.
func (p *Place) KeepRun(file string, in *subject.Input, stored *corev1.ConfigMap) {
	p.T.Helper()
	var b bytes.Buffer
	b.WriteString("# Written by " + p.T.Name() + ".\n")
	add := func(kind, version string, object any, meta *metav1.ObjectMeta) {
		meta.ManagedFields, meta.ResourceVersion = nil, ""
		text, err := yaml.Marshal(object)
		if err != nil {
			p.T.Fatal(err)
		}
		b.WriteString("apiVersion: " + version + "\nkind: " + kind + "\n" + string(text) + "---\n")
	}
	test, config := in.Test.DeepCopy(), stored.DeepCopy()
	test.TypeMeta, config.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	add("RedisLoadTest", v1alpha1.GroupVersion.String(), test, &test.ObjectMeta)
	for _, f := range in.Faults {
		f.TypeMeta = metav1.TypeMeta{}
		add("RedisFault", v1alpha1.GroupVersion.String(), &f, &f.ObjectMeta)
	}
	add("ConfigMap", "v1", config, &config.ObjectMeta)
	err := os.WriteFile(file, bytes.TrimSuffix(b.Bytes(), []byte("---\n")), 0o644)
	if err != nil {
		p.T.Fatal(err)
	}
}

// Verifies lets a load test keep a ledger, of which nothing may be lost.
func Verifies(test *v1alpha1.RedisLoadTest) {
	test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "25%"}
	test.Spec.Objectives = &v1alpha1.Objectives{MaxLostWrites: new(int64(0))}
}

// CheckNothingLost checks the number of acknowledged ledger writes, and that none is lost.
func CheckNothingLost(t *testing.T, test *v1alpha1.RedisLoadTest, acknowledged int64) {
	t.Helper()
	st := &test.Status
	v := st.Verification
	if v == nil || v.Acknowledged != acknowledged || v.LostWrites == nil || *v.LostWrites != 0 ||
		v.Unread != "" ||
		v.SawErrors != nil {
		t.Fatalf("verification %+v, want %d acknowledged", v, acknowledged)
	}
	// Not the verdict: on a busy machine a real load generator may be the bottleneck, and the run
	// Inconclusive.
	o := st.Objectives
	if st.Summary.LostWrites == nil || *st.Summary.LostWrites != 0 ||
		len(o) != 1 || o[0].Met == nil ||
		!*o[0].Met {
		t.Errorf("summary %+v, objectives %+v", st.Summary, o)
	}
}

package follow

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/kube"
)

// A new object of one that has run keeps the spec and the user's labels.
func TestRenew(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "redquake.dev/v1alpha1", "kind": "RedisFault", "status": map[string]any{"verdict": "Pass"},
		"metadata": map[string]any{
			"name":      strings.Repeat("n", 46),
			"uid":       "1",
			"namespace": "shop",
			"labels":    map[string]any{"team": "a", v1alpha1.LabelExperiment: "e"},
			"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
				v1alpha1.AnnotationBegunAs:                         "1",
			},
		},
		"spec": map[string]any{"abort": true, "suspend": true, "action": map[string]any{"type": "PodKill"}},
	}}
	renew(u, kube.Fault)
	if u.GetName() != "" || u.GetUID() != "" || len(u.GetGenerateName()) != 41 || u.Object["status"] != nil ||
		len(u.GetLabels()) != 1 || u.GetLabels()["team"] != "a" || u.GetNamespace() != "shop" {
		t.Errorf("%v", u.Object)
	}
	if a := u.GetAnnotations(); len(a) != 1 || a[v1alpha1.AnnotationRerunOf] != strings.Repeat("n", 46) {
		t.Errorf("annotations %v", a)
	}
	if spec := u.Object["spec"].(map[string]any); len(spec) != 1 {
		t.Errorf("spec %v", spec)
	}
	u.SetName("n-x7k2p") // as the API server completes it
	renew(u, kube.Fault)
	if got := u.GetAnnotations()[v1alpha1.AnnotationRerunOf]; got != strings.Repeat("n", 46) {
		t.Errorf("the second time it is of %s", got)
	}
}

// The exit code is that of the worst verdict: Fail is certain, whatever else there is, and without one nothing was
// judged.
func TestExitOfObjects(t *testing.T) {
	object := func(verdict v1alpha1.Verdict, failed metav1.ConditionStatus) *kube.Object {
		return &kube.Object{Kind: kube.LoadTest, Test: &v1alpha1.RedisLoadTest{Status: v1alpha1.RedisLoadTestStatus{
			Verdict: verdict, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: failed}},
		}}}
	}
	pass, fail := object(v1alpha1.VerdictPass, metav1.ConditionFalse), object(v1alpha1.VerdictFail, metav1.ConditionFalse)
	doubtful, failed := object(v1alpha1.VerdictInconclusive, metav1.ConditionFalse), object("", metav1.ConditionTrue)
	restored := object("", metav1.ConditionFalse) // a copy from a backup, which has not run
	restored.Test.Status.Conditions = append(restored.Test.Status.Conditions, metav1.Condition{
		Type:   v1alpha1.ConditionComplete,
		Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonRestored,
	})
	for _, test := range []struct {
		objects []*kube.Object
		code    int
	}{
		{[]*kube.Object{restored, pass}, 3},
		{[]*kube.Object{pass, pass}, 0},
		{[]*kube.Object{pass, fail}, 1},
		{[]*kube.Object{pass, doubtful}, 2},
		{[]*kube.Object{doubtful, fail}, 1},
		{[]*kube.Object{failed, pass}, 3},
		{[]*kube.Object{failed, doubtful}, 3},
		{[]*kube.Object{doubtful, failed}, 3},
	} {
		code := 0
		if f, ok := errors.AsType[*cli.Failure](exitOfObjects(test.objects)); ok {
			code = f.Code
		}
		if code != test.code {
			t.Errorf("exit code %d, want %d", code, test.code)
		}
	}
}

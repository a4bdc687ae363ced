package main

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// Who may read load tests and faults, and no ConfigMaps, compares the figures of their statuses, and is told so.
func TestCompareWithoutConfigMaps(t *testing.T) {
	tests := "/apis/redquake.dev/v1alpha1/namespaces/shop/redisloadtests/"
	objects := map[string]any{
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisfaults": map[string]any{
			"kind":  "RedisFaultList",
			"items": []v1alpha1.RedisFault{},
		},
	}
	for _, name := range []string{"old", "new"} {
		test := &v1alpha1.RedisLoadTest{
			TypeMeta:   metav1.TypeMeta{Kind: "RedisLoadTest"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}
		test.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
		objects[tests+name] = test
		objects["/api/v1/namespaces/shop/configmaps/"+name+"-results"] = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure,
			Reason:   metav1.StatusReasonForbidden,
			Code:     403,
			Message:  "no",
		}
	}
	config := clitest.Cluster(t, objects)
	code, out, stderr := called("redquake", "compare", "old=old", "new=new", "-o", "json", "--kubeconfig", config)
	var c comparisons.Comparisons
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != cli.ExitOK ||
		!strings.Contains(strings.Join(c.Notes, "\n"), "The figures of old are those of its status") {
		t.Errorf("exit code %d, %v, notes %q, stderr %q", code, err, c.Notes, stderr)
	}
	if code, _, stderr = called("redquake", "report", "old", "--kubeconfig", config); code != cli.ExitError ||
		!strings.Contains(stderr, "read the record of RedisLoadTest old: ") {
		t.Errorf("report: exit code %d, stderr %q", code, stderr)
	}
}

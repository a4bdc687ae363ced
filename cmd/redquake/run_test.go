package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/kube"
)

// Objects are created in an order in which each finds what it needs: others, settings, load tests, faults, experiments, schedules; else as they stand in the files.
func TestReadWritten(t *testing.T) {
	text := `
# a comment only
---
{apiVersion: redquake.dev/v1alpha1, kind: RedisExperimentSchedule, metadata: {name: nightly}}
---
{apiVersion: redquake.dev/v1alpha1, kind: RedisExperiment, metadata: {name: e}}
---
{apiVersion: redquake.dev/v1alpha1, kind: RedisFault, metadata: {name: f}, status: {verdict: Pass}}
---
{apiVersion: redquake.dev/v1alpha1, kind: RedisFault, metadata: {name: s}, spec: {setting: true}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: redquake.dev/v1alpha1, kind: RedisLoadTest, metadata: {generateName: l-}}
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
`
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := readWritten([]string{file, "-"}, strings.NewReader(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, w := range all {
		order = append(order, w.ref())
		if _, found := w.object.Object["status"]; found && w.ours() {
			t.Errorf("%s has a status", w.ref())
		}
	}
	if got, want := strings.Join(order, " "), "secret/b configmap/a deployment/d redisfault/s redisloadtest/l-* redisfault/f redisexperiment/e redisexperimentschedule/nightly"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestReadWrittenRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Secret, metadata: {name: b}}": "contains no RedisLoadTest, RedisFault, RedisExperiment or RedisExperimentSchedule",
		"a: [": "standard input: ", // of the YAML parser
		"{apiVersion: redquake.dev/v1alpha1, kind: RedisFault}": "a RedisFault has no metadata.name",
		"text": "is not an object",
		"{apiVersion: redquake.dev/v1alpha1, kind: RedisExperimentSchedule, metadata: {name: nightly}}": "--file: standard input: redisexperimentschedule/nightly never ends: create it by kubectl apply, and follow a run of it, which is a RedisExperiment, by redquake watch redisexperiment/RUN\n",
	} {
		code, out, stderr := calledWith(text, "redquake", "run", "-f", "-")
		if code != cli.ExitError || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, stderr %q, want %q", text, code, stderr, want)
		}
	}
	if _, err := readWritten([]string{t.TempDir()}, nil); err == nil || !strings.Contains(err.Error(), "is a folder without a kustomization.yaml: name the files in it") {
		t.Errorf("a folder: %v", err)
	}
}

// A folder with a kustomization is built by kubectl, which says what is wrong with it.
func TestKustomization(t *testing.T) {
	folder, programs := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte("resources: [run.yaml]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs)
	if _, err := readWritten([]string{folder}, nil); err == nil || !strings.Contains(err.Error(), "is a kustomization, which kubectl builds: ") {
		t.Errorf("without kubectl: %v", err)
	}
	kubectl := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(`echo "no matches" >&2; exit 1`)
	if _, err := readWritten([]string{folder}, nil); err == nil || !strings.Contains(err.Error(), "kubectl kustomize "+folder+": no matches") {
		t.Errorf("with a kustomization that is refused: %v", err)
	}
	kubectl(`[ "$1 $2" = "kustomize ` + folder + `" ] && echo '{"apiVersion":"redquake.dev/v1alpha1","kind":"RedisLoadTest","metadata":{"name":"built"}}'`)
	all, err := readWritten([]string{folder}, nil)
	if err != nil || len(all) != 1 || all[0].ref() != "redisloadtest/built" {
		t.Errorf("%v, %v", all, err)
	}
}

// A new object of one that has run keeps the spec and the user's labels.
func TestRenew(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "redquake.dev/v1alpha1", "kind": "RedisFault", "status": map[string]any{"verdict": "Pass"},
		"metadata": map[string]any{
			"name": strings.Repeat("n", 46), "uid": "1", "namespace": "shop", "labels": map[string]any{"team": "a", v1alpha1.LabelExperiment: "e"},
			"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}", v1alpha1.AnnotationBegunAs: "1"},
		},
		"spec": map[string]any{"abort": true, "suspend": true, "action": map[string]any{"type": "PodKill"}},
	}}
	renew(u, kube.Fault)
	if u.GetName() != "" || u.GetUID() != "" || len(u.GetGenerateName()) != 41 || u.Object["status"] != nil || len(u.GetLabels()) != 1 || u.GetLabels()["team"] != "a" || u.GetNamespace() != "shop" {
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

// The exit code is that of the worst verdict: Fail is certain, whatever else there is.
func TestExitOfObjects(t *testing.T) {
	object := func(verdict v1alpha1.Verdict, failed metav1.ConditionStatus) *kube.Object {
		return &kube.Object{Kind: kube.LoadTest, Test: &v1alpha1.RedisLoadTest{Status: v1alpha1.RedisLoadTestStatus{
			Verdict: verdict, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: failed}},
		}}}
	}
	pass, fail := object(v1alpha1.VerdictPass, metav1.ConditionFalse), object(v1alpha1.VerdictFail, metav1.ConditionFalse)
	doubtful, failed := object(v1alpha1.VerdictInconclusive, metav1.ConditionFalse), object("", metav1.ConditionTrue)
	restored := object("", metav1.ConditionFalse) // a copy from a backup, which has not run
	restored.Test.Status.Conditions = append(restored.Test.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRestored})
	for _, test := range []struct {
		objects []*kube.Object
		code    int
	}{
		{[]*kube.Object{restored, pass}, 2},
		{[]*kube.Object{pass, pass}, 0}, {[]*kube.Object{pass, fail}, 1}, {[]*kube.Object{pass, doubtful}, 2}, {[]*kube.Object{doubtful, fail}, 1}, {[]*kube.Object{failed, pass}, 2},
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

package written

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Objects are created in an order in which each finds what it needs: others, settings, load tests, faults, experiments,
// schedules; else as they stand in the files.
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
	all, err := Read([]string{file, "-"},
		strings.NewReader(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"}}`))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, w := range all {
		order = append(order, w.Ref())
		if _, found := w.Content.Object["status"]; found && w.Ours() {
			t.Errorf("%s has a status", w.Ref())
		}
	}
	if got, want := strings.Join(order,
		" "),
		"secret/b configmap/a deployment/d redisfault/s redisloadtest/l-* redisfault/f redisexperiment/e "+
			"redisexperimentschedule/nightly"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A folder with a kustomization is built by kubectl, which says what is wrong with it.
func TestKustomization(t *testing.T) {
	folder, programs := t.TempDir(), t.TempDir()
	if _, err := Read([]string{folder}, nil); err == nil ||
		!strings.Contains(err.Error(), "is a folder without a kustomization.yaml: name the files in it") {
		t.Errorf("a folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte("resources: [run.yaml]\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs)
	if _, err := Read([]string{folder}, nil); err == nil ||
		!strings.Contains(err.Error(), "is a kustomization, which kubectl builds: ") {
		t.Errorf("without kubectl: %v", err)
	}
	kubectl := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(programs, "kubectl"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(`echo "no matches" >&2; exit 1`)
	if _, err := Read([]string{folder}, nil); err == nil ||
		!strings.Contains(err.Error(), "kubectl kustomize "+folder+": no matches") {
		t.Errorf("with a kustomization that is refused: %v", err)
	}
	kubectl(`[ "$1 $2" = "kustomize ` + folder +
		`" ] && echo '{"apiVersion":"redquake.dev/v1alpha1","kind":"RedisLoadTest","metadata":{"name":"built"}}'`)
	all, err := Read([]string{folder}, nil)
	if err != nil || len(all) != 1 || all[0].Ref() != "redisloadtest/built" {
		t.Errorf("%v, %v", all, err)
	}
}

package docs_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of Kubernetes has a row for each version that the lab can be built with, that of its go.mod and others, and
// the text names each as supported.
func TestEveryKubernetesOfTheLabWasRun(t *testing.T) {
	own := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(\S+)$`).FindStringSubmatch(read(t, "hack/lab/kube/go.mod"))
	if own == nil {
		t.Fatal("hack/lab/kube/go.mod requires no k8s.io/kubernetes")
	}
	versions := []string{own[1]}
	files, err := filepath.Glob(filepath.Join(root, "hack/lab/kube/versions/*.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		versions = append(versions, strings.TrimSuffix(filepath.Base(f), ".mod"))
	}
	slices.Sort(versions)
	rows := slices.Sorted(maps.Keys(tableAfter(t, "docs/compatibility.md", "<!-- compat, kubernetes: begin")))
	if !slices.Equal(rows, versions) {
		t.Errorf("the page has rows of %v, the lab can be built with %v", rows, versions)
	}
	_, supported, _ := strings.Cut(read(t, "docs/compatibility.md"), "Supported are ")
	supported, _, _ = strings.Cut(supported, "\n")
	for _, version := range versions {
		if minor := version[:strings.LastIndex(version, ".")]; !strings.Contains(supported, minor) {
			t.Errorf("%s was run, and the text does not name %s: %s", version, minor, supported)
		}
	}
	makefile := read(t, "Makefile")
	if want := "VERSIONS ?= " + strings.Join(versions, " ") + "\n"; !strings.Contains(makefile, want) {
		t.Errorf("the Makefile has no %q", want)
	}
}

// The table of servers has the oldest and the newest that are supported and can be had, and no other product.
func TestServersThatWereRun(t *testing.T) {
	rows := tableAfter(t, "docs/compatibility.md", "<!-- compat, servers: begin")
	for _, want := range []string{"Redis 6.2.", "Redis 7.0.", "Redis 8.", "Valkey 8.", "Valkey 9."} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(rows)), func(row string) bool {
			return strings.HasPrefix(row, want)
		}) {
			t.Errorf("no row of %s, only %v", want, slices.Sorted(maps.Keys(rows)))
		}
	}
}

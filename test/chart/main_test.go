//go:build integration

// Package chart_test tests the Helm chart by helm itself, in its two major versions: what it renders to, against what
// kustomize makes of config; which values it refuses; and its life on a real kube-apiserver.
package chart_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/installed"
	"github.com/redquake/redquake/internal/testing/manifests"
)

// kubernetes is the version that helm takes a cluster for where there is none.
const kubernetes = "1.35.0"

// versions are helm by its major version.
var versions = map[string]string{"helm 3": "helm3", "helm 4": "helm"}

// helm is a helm of its own: no test shares its caches and settings with another.
type helm struct {
	program, chart string
	env            []string
}

func newHelm(t *testing.T, program string) helm {
	t.Helper()
	chart, err := cluster.Path("charts", "redquake")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	return helm{
		program: installed.Program(t, program),
		chart:   chart,
		env: append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
			"KUBECONFIG="+filepath.Join(home, "kubeconfig")),
	}
}

// run runs helm, and returns what it wrote.
func (h helm) run(t *testing.T, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.CommandContext(t.Context(), h.program, arguments...)
	command.Env, command.Stdout, command.Stderr = h.env, &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

// must is run, and fails the test if helm does.
func (h helm) must(t *testing.T, arguments ...string) string {
	t.Helper()
	out, errs, err := h.run(t, arguments...)
	if err != nil {
		t.Fatalf("helm %q: %v\n%s", arguments, err, errs)
	}
	return out
}

// rendered are the objects of the chart with values, without the CRDs and hooks.
func (h helm) rendered(t *testing.T, namespace string, values ...string) []*unstructured.Unstructured {
	t.Helper()
	return manifests.Objects(t, "the chart", []byte(h.must(t, h.template(namespace, append(values, "--no-hooks")...)...)))
}

func (h helm) template(namespace string, more ...string) []string {
	return append([]string{"template", "redquake", h.chart, "--namespace", namespace, "--kube-version", kubernetes}, more...)
}

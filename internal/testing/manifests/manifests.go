// Package manifests reads objects as YAML has them, and what kustomize makes of config.
package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/redquake/redquake/internal/testing/cluster"
)

// Objects are the objects of a YAML file.
func Objects(t testing.TB, name string, text []byte) (all []*unstructured.Unstructured) {
	t.Helper()
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// Installation is what `kubectl kustomize` makes of a folder of config, whose default installation has the components.
func Installation(t testing.TB, folder string, components ...string) []*unstructured.Unstructured {
	t.Helper()
	source, err := cluster.Path("config")
	if err != nil {
		t.Fatal(err)
	}
	config := t.TempDir()
	if err := os.CopyFS(config, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(config, "default", "kustomization.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(components) > 0 {
		_, err = file.WriteString("components: [../components/" + strings.Join(components, ", ../components/") + "]\n")
	}
	if err := cmp.Or(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	built := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize",
		filepath.Join(config, folder))
	built.Stderr = os.Stderr
	text, err := built.Output()
	if err != nil {
		t.Fatalf("kubectl kustomize config/%s with %v: %v", folder, components, err)
	}
	return Objects(t, folder, text)
}

// Package meshtest provides Chaos Mesh's kinds to tests, and a stand-in for its controller.
package meshtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/cluster"
)

// Finalizer is set by Chaos Mesh when it processes an object, and removed when the chaos is reverted.
const Finalizer = "chaos-mesh/records"

// What Chaos Mesh's controller writes into status.experiment of an object that breaks the pod shop/redis-0, step by
// step.
const (
	Selected = `{desiredPhase: Run, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Not Injected, ` +
		`injectedCount: 0, recoveredCount: 0}]}`
	Waits = `{desiredPhase: Run, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Not Injected/Wait, ` +
		`injectedCount: 0, recoveredCount: 0}]}`
	Refused = `{desiredPhase: Run, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Not Injected, ` +
		`injectedCount: 0, recoveredCount: 0, events: [{type: Failed, operation: Apply, message: no agent, timestamp: "2026-11-21T10:00:00Z"}]}]}`
	Injected = `{desiredPhase: Run, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Injected, ` +
		`injectedCount: 1, recoveredCount: 0}]}`
	Recovers = `{desiredPhase: Stop, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Injected/Wait, ` +
		`injectedCount: 1, recoveredCount: 0}]}`
	Recovered = `{desiredPhase: Stop, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Not Injected, ` +
		`injectedCount: 1, recoveredCount: 1}]}`
	Never = `{desiredPhase: Stop, containerRecords: [{id: shop/redis-0, selectorKey: ., phase: Not Injected, ` +
		`injectedCount: 0, recoveredCount: 0}]}`
)

// CRDs are the files of Chaos Mesh's CRDs, from its Go module at the version that hack/chaosmesh names.
func CRDs(t testing.TB) []string {
	t.Helper()
	folder, err := cluster.Path("hack/chaosmesh")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "mod", "download", "-json", "github.com/chaos-mesh/chaos-mesh")
	command.Dir = folder
	text, err := command.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(text, &module)
	}
	if err != nil {
		t.Fatalf("Chaos Mesh's module: %v: %s", err, text)
	}
	var files []string
	for _, name := range []string{"podchaos", "networkchaos", "iochaos", "stresschaos", "timechaos"} {
		files = append(files, filepath.Join(module.Dir, "config/crd/bases/chaos-mesh.org_"+name+".yaml"))
	}
	return files
}

// PodOf is the pod of a namespace that an object selects.
func PodOf(child object.Object, namespace string) (string, error) {
	var o struct {
		Spec struct {
			Selector struct {
				Pods map[string][]string `json:"pods"`
			} `json:"selector"`
		} `json:"spec"`
	}
	text, err := json.Marshal(child)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	pods := o.Spec.Selector.Pods[namespace]
	if err == nil && len(pods) == 1 {
		return pods[0], nil
	}
	return "", fmt.Errorf("%s selects %v, not one pod: %w", child.GetName(), o.Spec.Selector.Pods, err)
}

// SetStatus sets the status that Chaos Mesh writes for an object that breaks a pod, given as namespace/name.
func SetStatus(t testing.TB, child object.Object, pod, experiment string) {
	t.Helper()
	// AllRecovered is True already: it must not be used as evidence.
	text := `{conditions: [{type: AllRecovered, status: "True"}, {type: Selected, status: "True"}], experiment: ` +
		strings.ReplaceAll(experiment, "shop/redis-0", pod) + `}`
	reset(child.GetStatus())
	err := yaml.UnmarshalStrict([]byte(text), child.GetStatus())
	if err != nil {
		t.Error(err)
	}
}

// reset sets it to its zero value: decoding would merge with the existing value.
func reset[T any](into *T) {
	*into = *new(T)
}

// Children are the objects of a kind in a namespace.
func Children(
	ctx context.Context, cluster client.Reader, kind schema.GroupVersionKind, namespace string,
) ([]object.Object, error) {
	list := object.NewList(kind)
	err := cluster.List(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", object.Resource(kind), err)
	}
	items, err := meta.ExtractList(list)
	children := make([]object.Object, len(items))
	for i := range items {
		children[i] = items[i].(object.Object)
	}
	return children, err
}

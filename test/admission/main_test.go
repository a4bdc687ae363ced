//go:build integration

// Package admission_test tests what a real kube-apiserver accepts and refuses: the CRDs' schemas, defaults and CEL
// rules, the samples, and what tools conclude from a status.
package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/cluster"
)

var (
	server *rest.Config
	// strict refuses unknown fields, as `kubectl apply` does.
	strict client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run installs the CRDs, which the API server refuses if a rule of theirs does not compile or may cost too much.
func run(m *testing.M) int {
	var stop func() error
	var err error
	if server, stop, err = cluster.ControlPlane(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	c, err := client.New(server, client.Options{Scheme: scheme})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	strict = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	return m.Run()
}

// The smallest specs that are accepted. Cases are merge patches to them; null removes.
var smallest = map[string]string{
	"RedisLoadTest": `
target: {service: {name: redis}}
load: {users: 1, duration: 10s}
workload: {commands: [{name: get, command: [GET, "{key}"]}]}
`,
	"RedisFault": `
loadTestRef: {name: checkout-cache}
action: {type: PodKill}
`,
	"RedisExperiment": smallestExperiment,
	"RedisExperimentSchedule": `
template:
  spec:` + strings.ReplaceAll(smallestExperiment, "\n", "\n    ") + `
schedule: "@daily"
`,
}

const smallestExperiment = `
template:
  spec:
    target: {service: {name: redis}}
    load: {duration: 10s}
    workload: {commands: [{name: get, command: [GET, "{key}"]}]}
matrix: [{name: users, path: load.users, values: [1, 2]}]
`

// inSchedule is a change to an experiment as one to a schedule of it, with others.
func inSchedule(change string, others ...string) string {
	return "{" + strings.Join(append(others, "template: {spec: "+change+"}"), ", ") + "}"
}

// object gives the smallest object of a kind, with a change to its spec.
func object(t *testing.T, kind, name, change string) *unstructured.Unstructured {
	t.Helper()
	spec := merge(parse(t, smallest[kind]), parse(t, change))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       spec,
	}}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// merge applies a JSON merge patch (RFC 7386).
func merge(into, patch map[string]any) map[string]any {
	for k, v := range patch {
		child, isMap := v.(map[string]any)
		below, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			into[k] = merge(below, child)
		default:
			into[k] = v
		}
	}
	return into
}

// created creates an object that must be accepted, and deletes it with the test.
func created(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := strict.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	after := context.WithoutCancel(t.Context()) // a test's context ends before its clean-up
	t.Cleanup(func() {
		if err := strict.Delete(after, o); err != nil {
			t.Error(err)
		}
	})
	return o
}

// patchSpec sends a merge patch of the spec; patchStatus one of the status.
func patchSpec(t *testing.T, o *unstructured.Unstructured, change string) error {
	t.Helper()
	return strict.Patch(t.Context(), o.DeepCopy(),
		client.RawPatch("application/merge-patch+json", wrap(t, "spec", change)))
}

func patchStatus(t *testing.T, o *unstructured.Unstructured, change string) error {
	t.Helper()
	return strict.Status().Patch(t.Context(), o,
		client.RawPatch("application/merge-patch+json", wrap(t, "status", change)))
}

// text is a value as JSON.
func text(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func wrap(t *testing.T, member, change string) []byte {
	t.Helper()
	return []byte(text(t, map[string]any{member: parse(t, change)}))
}

// name makes an object's name of a test's, short enough for a schedule.
func name(t *testing.T) string {
	text := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:]))
	return strings.Trim(text[:min(len(text), 11)], "-")
}

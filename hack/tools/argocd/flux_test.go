package main

import (
	"os"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The expressions in the sample for Flux say of each object that runs once what Argo CD's health says: current is
// Healthy, failed is Degraded. Schedules need none:
// TestStates has what kstatus says of them.
func TestFluxExpressions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../config/samples/gitops/flux-kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []struct{ APIVersion, Kind, Current, Failed string } `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, check := range kustomization.Spec.HealthCheckExprs {
		for name, o := range objects(t) {
			if want := states[name]; o.GetKind() == check.Kind {
				checked++
				if current := evaluate(t, check.Current, o); current != (want.health == "Healthy") {
					t.Errorf("%s is current: %v, to Argo CD it is %s", name, current, want.health)
				}
				if failed := evaluate(t, check.Failed, o); failed != (want.health == "Degraded") {
					t.Errorf("%s has failed: %v, to Argo CD it is %s", name, failed, want.health)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d objects were checked", checked)
	}
}

// evaluate evaluates an expression as Flux does: with the fields of the object as variables.
func evaluate(t *testing.T, expression string, o *unstructured.Unstructured) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("status", cel.DynType), cel.Variable("spec", cel.DynType),
		cel.Variable("metadata", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	compiled, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(compiled)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(o.Object)
	if err != nil {
		t.Fatalf("%s: %s: %v", o.GetName(), expression, err)
	}
	is, _ := value.Value().(bool)
	return is
}

//go:build integration

package admission_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// defaultsInLists are the fields that Argo CD shows as a difference unless it compares by a dry run, as it replaces
// lists as a whole: docs/gitops.md names them.
var defaultsInLists = []string{
	"RedisExperiment spec.faults[].spec.abort",
	"RedisExperiment spec.faults[].spec.dryRun",
	"RedisExperiment spec.faults[].spec.engine",
	"RedisExperiment spec.faults[].spec.recoveryDeadline",
	"RedisExperiment spec.faults[].spec.select.mode",
	"RedisExperiment spec.faults[].spec.select.pick",
	"RedisExperiment spec.faults[].spec.setting",
	"RedisExperiment spec.faults[].spec.suspend",
	"RedisExperiment spec.faults[].spec.trigger.timeout",
	"RedisExperiment spec.matrix[].settings[].noFaults",
	"RedisExperiment spec.template.spec.workload.commands[].weight",
	"RedisLoadTest spec.workload.commands[].weight",
}

// Nothing that a GitOps tool applies differs afterwards: neither the API server's defaults nor the operator's
// annotation are drift, and neither is a second apply, which leaves both.
func TestNoDrift(t *testing.T) {
	makeNamespace(t, "drift", nil)
	applied := 0
	inLists := map[string]bool{}
	for _, folder := range []string{"samples", "samples/gitops"} {
		for file, shipped := range filesOf(t, folder) {
			for _, manifest := range shipped {
				if manifest.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
					continue
				}
				applied++
				manifest.SetNamespace("drift")
				live := apply(t, manifest)
				after := context.WithoutCancel(t.Context()) // a test's context ends before its clean-up
				t.Cleanup(func() { _ = strict.Delete(after, live) })
				note(t, live)
				settled := apply(t, manifest) // stores the default of the status, which a creation does not
				again := apply(t, manifest)
				if settled.GetGeneration() != live.GetGeneration() || again.GetResourceVersion() != settled.GetResourceVersion() {
					t.Errorf("%s: %s %s is changed by being applied again (-before +after):\n%s", file, live.GetKind(), live.GetName(),
						cmp.Diff(settled.Object, again.Object))
				}
				if noted := again.GetAnnotations()[v1alpha1.AnnotationBegunAs]; noted != string(live.GetUID()) {
					t.Errorf("%s: %s %s is noted as %q after it was applied again", file, live.GetKind(), live.GetName(), noted)
				}
				// Flux, and Argo CD with ServerSideDiff, compare the object with what a dry run of the apply would make of it.
				if diff := difference(content(apply(t, manifest, client.DryRunAll)), content(live)); len(diff) > 0 {
					t.Errorf("%s: %s %s differs from a dry run in %q", file, live.GetKind(), live.GetName(), diff)
				}
				// Argo CD otherwise compares what the manifest has.
				for _, path := range difference(content(manifest), content(live)) {
					inLists[live.GetKind()+" "+path] = true
				}
			}
		}
	}
	if applied < 30 {
		t.Errorf("%d objects were applied", applied)
	}
	if got := slices.Sorted(maps.Keys(inLists)); !slices.Equal(got, defaultsInLists) {
		t.Errorf("defaults in lists differ from what is documented:\n%s", strings.Join(got, "\n"))
	}
}

// note sets the annotation that the operator sets on an object that begins to run.
func note(t *testing.T, live *unstructured.Unstructured) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationBegunAs, live.GetUID())
	if err := strict.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(patch)),
		client.FieldOwner("manager")); err != nil {
		t.Fatalf("%s %s: %v", live.GetKind(), live.GetName(), err)
	}
}

// apply applies a manifest as a GitOps tool does.
func apply(
	t *testing.T, manifest *unstructured.Unstructured, options ...client.ApplyOption,
) *unstructured.Unstructured {
	t.Helper()
	sent := manifest.DeepCopy()
	options = append(options, client.FieldOwner("gitops"), client.ForceOwnership)
	if err := strict.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(sent), options...); err != nil {
		t.Fatalf("%s %s: %v", manifest.GetKind(), manifest.GetName(), err)
	}
	return sent
}

// content is what tools compare.
func content(o *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"spec":        o.Object["spec"],
		"labels":      anyMap(o.GetLabels()),
		"annotations": anyMap(o.GetAnnotations()),
	}
}

func anyMap(of map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range of {
		all[key] = value
	}
	return all
}

// difference are the paths at which an object differs from what is wanted. What is not wanted may be there, but not in
// an item of a list.
func difference(wanted, is any) []string { return differ("", wanted, is, false) }

func differ(path string, wanted, is any, exactly bool) []string {
	var all []string
	switch w := wanted.(type) {
	case map[string]any:
		have, _ := is.(map[string]any)
		keys := slices.Collect(maps.Keys(w))
		if exactly {
			for key := range have {
				if _, both := w[key]; !both {
					keys = append(keys, key)
				}
			}
		}
		for _, key := range keys {
			all = append(all, differ(strings.TrimPrefix(path+"."+key, "."), w[key], have[key], exactly)...)
		}
	case []any:
		have, _ := is.([]any)
		if len(w) != len(have) {
			return []string{path}
		}
		for i := range w {
			all = append(all, differ(path+"[]", w[i], have[i], true)...)
		}
	default:
		if !reflect.DeepEqual(number(wanted), number(is)) {
			return []string{path}
		}
	}
	return all
}

// number is a value whose type does not depend on how it was decoded.
func number(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case int:
		return float64(v)
	}
	return value
}

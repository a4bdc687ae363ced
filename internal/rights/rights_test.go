package rights_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/config/crd"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/rights"
)

// A type that is not in the table could be created by anybody.
func TestEveryTypeIsInTheTable(t *testing.T) {
	for _, typ := range fault.Types() {
		if !slices.ContainsFunc(rights.Faults, func(f rights.Fault) bool { return f.Type == typ }) {
			t.Errorf("%s has no entry in rights.Faults", typ)
		}
	}
}

// A fault of a kind without an entry would begin without the question whether the operator may do what it takes.
func TestEveryKindIsAnOperation(t *testing.T) {
	for _, f := range rights.Faults {
		if !slices.ContainsFunc(rights.Operations, func(o rights.Operation) bool { return o.Type == f.Type && o.Engine == f.Engine }) {
			t.Errorf("%s %s has no entry in rights.Operations", f.Engine, f.Type)
		}
	}
	if len(rights.Operations) != len(rights.Faults) {
		t.Errorf("%d operations, %d kinds", len(rights.Operations), len(rights.Faults))
	}
}

// The kinds on nodes are those with rights on nodes: the others are bound by default.
func TestOperationsOnNodesTaint(t *testing.T) {
	for _, o := range rights.Operations {
		spec := v1alpha1.RedisFaultSpec{Engine: o.Engine, Action: v1alpha1.Action{Type: o.Type}}
		injector, err := fault.For(&spec, contract.Deps{})
		if err != nil {
			t.Fatalf("%s: %v", o.Type, err)
		}
		if taints := injector.Traits().Taints; taints != (len(o.On(true)) > 0) {
			t.Errorf("%s: taints %v, has rights on cluster-scoped resources %v", o.Type, taints, o.On(true))
		}
	}
}

// What a fault needs depends on its settings.
func TestNeeds(t *testing.T) {
	tests := []struct {
		name string
		spec v1alpha1.RedisFaultSpec
		want []string
	}{
		{"PodKill", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, []string{"delete pods"}},
		{"PodKill by Chaos Mesh", v1alpha1.RedisFaultSpec{Engine: v1alpha1.EngineChaosMesh, Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}},
			[]string{"get podchaos.chaos-mesh.org", "list podchaos.chaos-mesh.org", "create podchaos.chaos-mesh.org", "delete podchaos.chaos-mesh.org"}},
		{"IOThreads by a roll", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Method: v1alpha1.ApplyRoll}}},
			[]string{"patch statefulsets.apps", "delete pods"}},
		{"IOThreads by CONFIG SET", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Method: v1alpha1.ApplyLive}}}, nil},
		{"VolumeAttachDelay without taint", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultVolumeAttachDelay, VolumeAttachDelay: &v1alpha1.VolumeAttachDelay{KeepAway: v1alpha1.KeepAwayNone}}},
			[]string{"create pods", "delete pods", "get persistentvolumeclaims", "get persistentvolumes", "get volumeattachments.storage.k8s.io", "list volumeattachments.storage.k8s.io"}},
		{"Config", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultConfig}}, nil},
	}
	for _, test := range tests {
		var got []string
		for _, right := range rights.OperationOf(&test.spec).Needs(&test.spec.Action) {
			got = append(got, right.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s needs %q, want %q", test.name, got, test.want)
		}
	}
}

// A reference to a Secret that is not in the list could be used by anybody to read that Secret.
func TestEverySecretIsInTheTable(t *testing.T) {
	for _, resource := range []string{"redisfaults", "redisloadtests", "redisexperiments", "redisexperimentschedules"} {
		fields := secretsIn("", specOf(t, resource))
		slices.Sort(fields)
		if known := slices.Sorted(slices.Values(rights.Secrets[resource])); !slices.Equal(fields, known) {
			t.Errorf("%s: the CRD refers to Secrets in %q, rights.Secrets has %q", resource, fields, known)
		}
	}
}

// specOf is the schema of the spec of a resource.
func specOf(t *testing.T, resource string) apiext.JSONSchemaProps {
	t.Helper()
	text, err := crd.Bases.ReadFile("bases/redquake.dev_" + resource + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiext.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// A setting that is not in the table could be applied by anybody.
func TestEverySettingIsInTheTable(t *testing.T) {
	setting := specOf(t, "redisexperiments").Properties["matrix"].Items.Schema.Properties["settings"].Items.Schema
	for field := range setting.Properties {
		if slices.Contains([]string{"name", "faults", "noFaults"}, field) {
			continue
		}
		if !slices.ContainsFunc(rights.Settings, func(s rights.Member) bool { return s.Field == field }) {
			t.Errorf("%s has no entry in rights.Settings", field)
		}
	}
}

// The exceptions of a kind have one setting: an experiment's policy tells a kind with it from one without it.
func TestOneExceptionForEachKind(t *testing.T) {
	for _, f := range rights.Faults {
		var settings []string
		for _, need := range f.Needs {
			if need.Unless != nil {
				settings = append(settings, need.Unless.Holds("action"))
			}
		}
		if len(slices.Compact(settings)) > 1 {
			t.Errorf("%s %s needs less with %q", f.Engine, f.Type, settings)
		}
	}
}

// secretsIn are the paths of the fields that refer to a Secret. Those within a list end in [].
func secretsIn(path string, schema apiext.JSONSchemaProps) []string {
	var found []string
	for name, field := range schema.Properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		if strings.HasSuffix(name, "SecretRef") {
			found = append(found, at)
			continue
		}
		found = append(found, secretsIn(at, field)...)
		if field.Items != nil && field.Items.Schema != nil {
			inside := secretsIn(at+"[]", *field.Items.Schema)
			if len(inside) > 0 && (field.MaxItems == nil || *field.MaxItems != rights.MostItems) {
				found = append(found, fmt.Sprintf("%s has another maximum than rights.MostItems", at))
			}
			found = append(found, inside...)
		}
	}
	return found
}

// docs/security.md has a row for each kind, with everything that it needs of its user.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rights.Faults {
		row := rowOf(string(text), f)
		for _, need := range f.Needs {
			if !strings.Contains(row, need.String()) {
				t.Errorf("docs/security.md: the row of %s %s lacks %q: %q", f.Engine, f.Type, need, row)
			}
		}
	}
}

// docs/security.md names the role of each kind, and what it grants. Kinds with the same verbs share a row.
func TestOperationsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.Collect(strings.Lines(string(text)))
	for _, o := range rights.Operations {
		for _, cluster := range []bool{false, true} {
			for _, grant := range o.On(cluster) {
				name := strings.TrimPrefix(strings.TrimPrefix(o.Role(cluster), "manager"), "cluster")
				documented := slices.ContainsFunc(rows, func(row string) bool {
					return strings.HasPrefix(row, "| `redquake-") && strings.Contains(row, name+"`") && strings.Contains(row, grant.Resource)
				})
				if !documented {
					t.Errorf("docs/security.md has no row with %s and %s", o.Role(cluster), grant.Resource)
				}
			}
		}
	}
}

// rowOf is the row of the table in which a kind is listed.
func rowOf(text string, f rights.Fault) string {
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		names, byChaosMesh := strings.CutPrefix(strings.TrimSpace(cells[1]), "by Chaos Mesh: ")
		if byChaosMesh == (f.Engine == v1alpha1.EngineChaosMesh) && slices.Contains(strings.Split(names, ", "), string(f.Type)) {
			return line
		}
	}
	return ""
}

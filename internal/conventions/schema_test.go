// Package conventions checks the API against its conventions where hack/tools/apilint does not: what the CRDs show, and
// what is described. Breaking a rule is a breaking change later.
package conventions

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	apiFolder = "../../api/v1alpha1"
	crdFolder = "../../config/crd/bases"
)

// embedded are the specs of other kinds in a kind: they are checked where they belong.
var embedded = map[string][]string{
	"RedisExperiment":         {"spec.template.spec", "spec.faults[].spec"},
	"RedisExperimentSchedule": {"spec.template.spec"},
}

// fromKubernetes are fields of Kubernetes' own types. Selectors are bounded by what a label may be, when they are
// parsed. The API server checks the rest when the load pods' Job is made, and by a dry run what the operator makes of
// the patch of a pod template, which it decodes strictly, up to 16 KiB. The options of a client library are for that to
// check, up to 16 KiB.
var fromKubernetes = regexp.MustCompile(`\.(podSelector|client\.options|observe\.pods\[\]\.selector|podTemplate\.patch|` +
	`(pods|probePods)\.(resources|tolerations|affinity|topologySpreadConstraints))$`)

func TestSchemas(t *testing.T) {
	for kind, crd := range installed(t) {
		for _, v := range crd.Spec.Versions {
			for _, f := range findings(kind, "", *v.Schema.OpenAPIV3Schema) {
				t.Errorf("%s %s: %s", kind, v.Name, f)
			}
		}
	}
}

// findings walks a schema and returns every violation. path is that of the schema itself: "" at the root,
// "spec.load.stages[]" below.
func findings(kind, path string, s apiext.JSONSchemaProps) (all []string) {
	if path == "metadata" || slices.Contains(embedded[kind], path) || fromKubernetes.MatchString(path) {
		return nil
	}
	preserves := s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
	switch {
	case s.XIntOrString: // quantities and similar types: the API server limits them by parsing
	case s.Type == "integer" && strings.HasPrefix(path, "spec.") && (s.Minimum == nil || s.Maximum == nil):
		all = append(all, path+": an integer of the spec without minimum and maximum")
	case s.AdditionalProperties != nil && s.MaxProperties == nil:
		all = append(all, path+": a map without maxProperties")
	case s.Type == "object" && s.AdditionalProperties == nil && (preserves || len(s.Properties) == 0):
		all = append(all, path+": an object without properties, or with unknown fields preserved")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		all = append(all, findings(kind, strings.TrimPrefix(path+"."+name, "."), s.Properties[name])...)
	}
	if s.Items != nil {
		all = append(all, findings(kind, path+"[]", *s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		all = append(all, findings(kind, path+"{}", *s.AdditionalProperties.Schema)...)
	}
	return all
}

// Each rule finds its violation; a valid schema has no findings.
func TestRules(t *testing.T) {
	tests := []struct{ schema, want string }{ // path: rule; empty = nothing is found
		{`spec: {type: object, properties: {rate: {type: integer, minimum: 0, maximum: 9}}}`, ""},
		{`spec: {type: object, properties: {size: {x-kubernetes-int-or-string: true}}}`, ""},
		{`spec: {type: object, properties: {top: {type: integer, minimum: 0}}}`, "spec.top: an integer"},
		{`spec: {type: object, properties: {tops: {type: array, items: {type: integer}}}}`, "spec.tops[]: an integer"},
		{`status: {type: object, properties: {count: {type: integer}}}`, ""},
		{`labels: {type: object, additionalProperties: {type: string}, maxProperties: 3}`, ""},
		{`labels: {type: object, additionalProperties: {type: string}}`, "labels: a map"},
		{`spec: {type: object, properties: {podSelector: {type: object}}}`, ""},
		{`a: {type: object}`, "a: an object"},
		{`a: {type: object, properties: {b: {type: string}}, x-kubernetes-preserve-unknown-fields: true}`, "a: an object"},
	}
	for _, test := range tests {
		var s apiext.JSONSchemaProps
		if err := yaml.UnmarshalStrict([]byte("type: object\nproperties:\n  "+test.schema), &s); err != nil {
			t.Fatal(err)
		}
		got := findings("", "", s)
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], test.want)) {
			t.Errorf("%s: found %q, want %q", test.schema, got, test.want)
		}
	}
}

// installed reads the generated CRDs, by kind.
func installed(t *testing.T) map[string]*apiext.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRD in %s (%v): run make manifests", crdFolder, err)
	}
	crds := make(map[string]*apiext.CustomResourceDefinition, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiext.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crds[crd.Spec.Names.Kind] = crd
	}
	return crds
}

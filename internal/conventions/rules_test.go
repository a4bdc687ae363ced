package conventions

import (
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Each rule finds its violation; a valid schema has no findings.
func TestRules(t *testing.T) {
	tests := []struct {
		name, schema string
		want         string // path: rule; empty = nothing is found
	}{
		{"good", `{spec: {type: object, description: spec is, properties: {
			names: {type: array, description: names of, maxItems: 3, x-kubernetes-list-type: set, items: {type: string, maxLength: 5}},
			rate: {type: integer, description: rate in, minimum: 0, maximum: 9},
			at: {type: string, format: date-time, description: at is},
			mode: {type: string, enum: [A, B], description: mode is},
			size: {x-kubernetes-int-or-string: true, description: size of},
			labels: {type: object, description: "labels, of", maxProperties: 3, additionalProperties: {type: string, maxLength: 5}}}},
			status: {type: object, description: status is, properties: {count: {type: integer, description: count of}}}}`, ""},
		{"number", `{a: {type: number, description: a is}}`, "a: " + ruleNoNumber},
		{"string", `{a: {type: string, description: a is}}`, "a: " + ruleStringBounded},
		{
			"string in a list",
			`{a: {type: array, description: a is, maxItems: 1, x-kubernetes-list-type: set, items: {type: string}}}`,
			"a[]: " + ruleStringBounded,
		},
		{
			"string in a map", `{a: {type: object, description: a is, maxProperties: 1, additionalProperties: {type: string}}}`,
			"a{}: " + ruleStringBounded,
		},
		{
			"integer without maximum",
			`{spec: {type: object, description: spec is, properties: {top: {type: integer, description: top is, minimum: 0}}}}`,
			"spec.top: " + ruleIntegerBounded,
		},
		{
			"list type", `{a: {type: array, description: a is, maxItems: 1, items: {type: string, maxLength: 5}}}`,
			"a: " + ruleListType,
		},
		{
			"list keys",
			`{a: {type: array, description: a is, maxItems: 1, x-kubernetes-list-type: map, items: {type: string,
			  maxLength: 5}}}`, "a: " + ruleListMapKeys,
		},
		{
			"list length",
			`{a: {type: array, description: a is, x-kubernetes-list-type: set, items: {type: string, maxLength: 5}}}`,
			"a: " + ruleMaxItems,
		},
		{
			"map of objects", `{a: {type: object, description: a is, maxProperties: 1, additionalProperties: {type: boolean}}}`,
			"a: " + ruleMapValues,
		},
		{
			"map without bound", `{a: {type: object, description: a is, additionalProperties: {type: string, maxLength: 5}}}`,
			"a: " + ruleMapBounded,
		},
		{"phase", `{currentPhase: {type: boolean, description: currentPhase is}}`, "currentPhase: " + ruleNoPhase},
		{"description", `{a: {type: boolean}}`, "a: " + ruleDescribed},
		{"description of another name", `{rate: {type: boolean, description: rates are}}`, "rate: " + ruleDescribedName},
		{
			"unknown fields", `{a: {type: object, description: a is, x-kubernetes-preserve-unknown-fields: true}}`,
			"a: " + ruleFreeForm,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s apiext.JSONSchemaProps
			if err := yaml.UnmarshalStrict([]byte("type: object\nproperties: "+strings.ReplaceAll(test.schema, "\t", " ")),
				&s); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings("", s) {
				got = append(got, f.String())
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func TestShapeRules(t *testing.T) {
	const good = `
spec:
  scope: Namespaced
  names: {kind: K, shortNames: [k], categories: [redquake]}
  versions:
  - name: v1
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Status}, {name: Message, priority: 1}]
    schema: {openAPIV3Schema: {required: [spec], properties: {status: {default: {observedGeneration: -1}}}}}
`
	want := shape{"K", "k", []column{{"Status", 0}, {"Message", 1}}}
	tests := []struct{ name, old, new, want string }{
		{"good", "", "", ""},
		{"short name", "[k]", "[rf]", "short names"},
		{"category", "[redquake]", "[all]", "categories"},
		{"scope", "Namespaced", "Cluster", "scope"},
		{"storage", "storage: true", "storage: false", "0 storage versions"},
		{"subresource", "subresources: {status: {}}", "", "no status subresource"},
		{"column", "{name: Status}, ", "", "has the columns"},
		{"priority", "priority: 1", "priority: 0", "has the columns"},
		{"status default", "default: {observedGeneration: -1}", "", "lacks the default"},
		{"required", "required: [spec], ", "", "requires"},
		{"webhook", "scope:", "conversion: {strategy: Webhook}\n  scope:", "conversion webhook"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			crd := &apiext.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict([]byte(strings.Replace(good, test.old, test.new, 1)), crd); err != nil {
				t.Fatal(err)
			}
			got := shapeFindings(crd, want)
			switch {
			case test.want == "" && len(got) > 0, test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

func TestMarkerRules(t *testing.T) {
	tests := []struct{ name, field, want string }{
		{"good", "// a is\n// +optional\nA int `json:\"a\"`", ""},
		{"inline", "B `json:\",inline\"`", ""},
		{"neither", "// a is\nA int `json:\"a\"`", "exactly one"},
		{"both", "// a is\n// +optional\n// +required\nA int `json:\"a\"`", "exactly one"},
		{"no comment", "// +required\nA int `json:\"a\"`", "no comment"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, got := markerFindings(t, "x.go", "package x\ntype T struct {\n"+test.field+"\n}\n")
			switch {
			case test.want == "" && len(got) > 0, test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

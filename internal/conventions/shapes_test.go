package conventions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The output of `kubectl get`, which users rely on.
var shapes = []shape{
	{"RedisLoadTest", "rlt", []column{
		{"Status", 0},
		{"Progress", 0},
		{"TPS", 0},
		{"P99", 0},
		{"Errors", 0},
		{"Trend", 0},
		{"Verdict", 0},
		{"Age", 0},
		{"Bottleneck", 1},
		{"Faults", 1},
		{"LostWrites", 1},
		{"Redis", 1},
		{"Message", 1},
	}},
	{"RedisFault", "rfault", []column{
		{"Type", 0},
		{"Status", 0},
		{"Target", 0},
		{"Effect", 0},
		{"Dip", 0},
		{"Outage", 0},
		{"Recovery", 0},
		{"LostWrites", 0},
		{"Verdict", 0},
		{"Age", 0},
		{"WhileActive", 1},
		{"LoadTest", 1},
		{"Message", 1},
	}},
	{"RedisExperiment", "rexp", []column{
		{"Status", 0},
		{"Progress", 0},
		{"Cells", 0},
		{"Worse", 0},
		{"Verdict", 0},
		{"Next", 0},
		{"Age", 0},
		{"Regressed", 1},
		{"ExpectedEnd", 1},
		{"Message", 1},
	}},
	{"RedisExperimentSchedule", "rexps", []column{
		{"Schedule", 0},
		{"Status", 0},
		{"Last", 0},
		{"Verdict", 0},
		{"Regressed", 0},
		{"Next", 0},
		{"Age", 0},
		{"Message", 1},
	}},
}

func TestShapes(t *testing.T) {
	crds := installed(t)
	if len(crds) != len(shapes) {
		t.Errorf("%d CRDs, want %d: each kind needs an entry in shapes", len(crds), len(shapes))
	}
	for _, want := range shapes {
		crd, ok := crds[want.kind]
		if !ok {
			t.Errorf("no CRD of %s", want.kind)
			continue
		}
		for _, f := range shapeFindings(crd, want) {
			t.Errorf("%s: %s", want.kind, f)
		}
	}
}

// column is one column of `kubectl get`; priority 1 needs -o wide.
type column struct {
	name     string
	priority int32
}

// shape is the public interface of a kind in addition to its schema.
type shape struct {
	kind, shortName string
	columns         []column
}

// shapeFindings compares a CRD with the shape of its kind.
func shapeFindings(crd *apiext.CustomResourceDefinition, want shape) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if got := crd.Spec.Names.ShortNames; !slices.Equal(got, []string{want.shortName}) {
		bad("short names %v, want [%s]", got, want.shortName)
	}
	if got := crd.Spec.Names.Categories; !slices.Equal(got, []string{"redquake"}) {
		bad("categories %v, want [redquake]: a separate category, not all", got)
	}
	if crd.Spec.Scope != apiext.NamespaceScoped {
		bad("scope %s, want Namespaced", crd.Spec.Scope)
	}
	if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiext.WebhookConverter {
		bad("a conversion webhook")
	}
	storage := 0
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			storage++
		}
		var got []column
		for _, c := range v.AdditionalPrinterColumns {
			got = append(got, column{c.Name, c.Priority})
		}
		if !slices.Equal(got, want.columns) {
			bad("%s has the columns %v, want %v", v.Name, got, want.columns)
		}
		status, ok := v.Schema.OpenAPIV3Schema.Properties["status"]
		if !ok || status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
			bad("%s: status lacks the default {\"observedGeneration\":-1}: "+
				"tools would consider a new object current", v.Name)
		}
		if !slices.Equal(v.Schema.OpenAPIV3Schema.Required, []string{"spec"}) {
			bad("%s requires %v, want [spec]", v.Name, v.Schema.OpenAPIV3Schema.Required)
		}
	}
	if storage != 1 {
		bad("%d storage versions, want 1", storage)
	}
	return out
}

func TestShapeRules(t *testing.T) {
	const good = `
spec:
  scope: Namespaced
  names: {kind: K, shortNames: [k], categories: [redquake]}
  versions:
  - name: v1
    storage: true
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

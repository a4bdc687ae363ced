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

// A reference to a Secret that is not in the list could be used by anybody to read that Secret.
func TestEverySecretIsInTheTable(t *testing.T) {
	for _, resource := range []string{"redisfaults", "redisloadtests"} {
		text, err := crd.Bases.ReadFile("bases/redquake.dev_" + resource + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var definition apiext.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &definition); err != nil {
			t.Fatal(err)
		}
		spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		fields := secretsIn("", spec)
		slices.Sort(fields)
		if known := slices.Sorted(slices.Values(rights.Secrets[resource])); !slices.Equal(fields, known) {
			t.Errorf("%s: the CRD refers to Secrets in %q, rights.Secrets has %q", resource, fields, known)
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

package rights_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/config/crd"
	"github.com/redquake/redquake/internal/rights"
)

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

// Package apitest has what tests need of our API: its scheme, and the schemas of the CRDs, to check what the controllers write.
package apitest

import (
	"os"
	"path/filepath"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// StatusSchema returns the schema of the status of a CRD, by the name of its file.
func StatusSchema(t *testing.T, file string) *apiextensions.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "config/crd/bases", file))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	return &schema
}

// root is the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run inside the module")
		}
		dir = filepath.Dir(dir)
	}
}

// Fits reports every value that exceeds a length, a bound or an enumeration of the schema. Path is the name of the value in messages.
func Fits(t *testing.T, path string, schema *apiextensions.JSONSchemaProps, value any) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, path, schema, fields)
}

func fits(t *testing.T, path string, schema *apiextensions.JSONSchemaProps, value any) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			p, ok := schema.Properties[key]
			if !ok {
				t.Errorf("%s.%s is not in the CRD", path, key)
				continue
			}
			fits(t, path+"."+key, &p, inner)
		}
		for _, key := range schema.Required {
			if _, ok := v[key]; !ok {
				t.Errorf("%s.%s is required", path, key)
			}
		}
	case []any:
		if schema.MaxItems != nil && int64(len(v)) > *schema.MaxItems {
			t.Errorf("%s has %d items, at most %d fit", path, len(v), *schema.MaxItems)
		}
		for _, inner := range v {
			fits(t, path+"[]", schema.Items.Schema, inner)
		}
	case string:
		if n := int64(len([]rune(v))); schema.MaxLength != nil && n > *schema.MaxLength {
			t.Errorf("%s: %q has %d characters, at most %d fit", path, v, n, *schema.MaxLength)
		}
		if len(schema.Enum) > 0 && !inEnum(schema.Enum, v) {
			t.Errorf("%s: %q is none of the values", path, v)
		}
	case int64:
		if schema.Minimum != nil && float64(v) < *schema.Minimum {
			t.Errorf("%s: %d is below %v", path, v, *schema.Minimum)
		}
	}
}

func inEnum(values []apiextensions.JSON, text string) bool {
	for _, v := range values {
		if string(v.Raw) == `"`+text+`"` {
			return true
		}
	}
	return false
}

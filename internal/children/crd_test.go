package children

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// specSchema is the schema of spec in the generated CRD.
func specSchema(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile("../../config/crd/bases/redquake.dev_redisloadtests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	return &spec
}

// setDefaults does to value what the API server does: a missing property with a default gets it, then its own properties theirs.
func setDefaults(t *testing.T, schema *apiextensionsv1.JSONSchemaProps, value any) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for name, property := range schema.Properties {
			if _, there := v[name]; !there && property.Default != nil {
				var def any
				if err := json.Unmarshal(property.Default.Raw, &def); err != nil {
					t.Fatal(err)
				}
				v[name] = def
			}
			setDefaults(t, &property, v[name])
		}
	case []any:
		for _, item := range v {
			setDefaults(t, schema.Items.Schema, item)
		}
	}
}

// Defaulted and the CRD set the same defaults.
func TestDefaultedAsTheCRD(t *testing.T) {
	for _, text := range []string{smallest, fullest} {
		var value map[string]any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		setDefaults(t, specSchema(t), value)
		admitted, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		want := loadTest(t, string(admitted)).Spec
		if diff := cmp.Diff(&want, Defaulted(&loadTest(t, text).Spec)); diff != "" {
			t.Errorf("defaults differ (-CRD +Defaulted):\n%s", diff)
		}
	}
}

// numbers lists every number of the schema that has a minimum and a maximum, as a path such as load.stages[0].users.
func numbers(schema *apiextensionsv1.JSONSchemaProps, path string, into map[string]*apiextensionsv1.JSONSchemaProps) {
	for name, property := range schema.Properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		if property.Maximum != nil && property.Minimum != nil {
			into[at] = &property
		}
		numbers(&property, at, into)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		numbers(schema.Items.Schema, path+"[0]", into)
	}
}

// set puts n at path; stages and commands have one item.
func set(value map[string]any, path string, n float64) {
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		name, list := strings.CutSuffix(part, "[0]")
		if value[name] == nil {
			value[name] = map[string]any{}
			if list {
				value[name] = []any{map[string]any{"duration": "1s"}}
			}
		}
		if list {
			value = value[name].([]any)[0].(map[string]any)
		} else {
			value = value[name].(map[string]any)
		}
	}
	value[parts[len(parts)-1]] = n
}

// Plan refuses what the CRD refuses: every number just outside its range, by its name.
func TestPlanRefusesOutsideTheCRD(t *testing.T) {
	ranges := map[string]*apiextensionsv1.JSONSchemaProps{}
	numbers(specSchema(t), "", ranges)
	// Not part of a plan.
	delete(ranges, "ttlSecondsAfterFinished")
	// Resolved to addresses before, which are checked.
	delete(ranges, "target.service.port")
	delete(ranges, "pods.tolerations[0].tolerationSeconds")
	if len(ranges) < 15 {
		t.Fatalf("only %d numbers with a range in the CRD: the schema was not read as it should", len(ranges))
	}
	for path, schema := range ranges {
		values := []float64{*schema.Maximum + 1, *schema.Minimum - 1}
		// A zero is what an absent number looks like, and gets its default.
		if *schema.Minimum == 1 && schema.Default != nil {
			values[1] = -1
		}
		for _, n := range values {
			t.Run(fmt.Sprintf("%s=%.0f", path, n), func(t *testing.T) {
				var value map[string]any
				if err := yaml.Unmarshal([]byte(smallest), &value); err != nil {
					t.Fatal(err)
				}
				set(value, path, n)
				text, err := yaml.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				test := &v1alpha1.RedisLoadTest{ObjectMeta: parent("x")}
				if err := yaml.UnmarshalStrict(text, &test.Spec); err != nil {
					t.Fatal(err)
				}
				_, err = Plan(test, addresses)
				if want := "spec." + path + ": "; err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want it to hold %q", err, want)
				}
			})
		}
	}
}

package run

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/golden"
)

const schemaFile = "../../../docs/report.schema.json"

// schemaOf is the JSON Schema of a report: of its types, with their values.
func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	one := func(values ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: values} }
	judged := one(string(report.Met), string(report.Missed), string(report.NotJudged))
	schema, err := jsonschema.For[report.Document](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[report.Prose]():   {Type: "string"},
		reflect.TypeFor[result.Seconds](): {Type: "number"},
		reflect.TypeFor[report.Judged]():  judged,
		reflect.TypeFor[report.Kind](): one(string(report.LoadTest), string(report.Fault), string(report.Experiment),
			string(report.Schedule), string(report.Comparison)),
		reflect.TypeFor[report.State](): one(string(report.Complete), string(report.Running), string(report.Failed),
			string(report.Pending)),
		reflect.TypeFor[report.Verdict](): one(string(report.Pass), string(report.Fail), string(report.Inconclusive)),
		reflect.TypeFor[report.Owner](): one(string(report.Kubernetes), string(report.Redis), string(report.Client),
			string(report.ByFault), string(report.Nobody)),
		reflect.TypeFor[result.Unit](): one(string(result.UnitCount), string(result.UnitShare), string(result.UnitSeconds),
			string(result.UnitPerSecond), string(result.UnitCores), string(result.UnitBytes)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	schema.Schema, schema.Title = "https://json-schema.org/draft/2020-12/schema", "A report of Redquake, version 1"
	schema.Properties["version"].Const = jsonschema.Ptr[any](report.Version)
	return schema
}

// The published schema is that of the types, and the JSON of real reports is valid by it.
func TestSchema(t *testing.T) {
	text, err := json.MarshalIndent(schemaOf(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if golden.Updating() {
		if err := os.WriteFile(schemaFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(published) != string(text) {
		t.Errorf("%s is not that of the types, -update writes it", schemaFile)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(published, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"quiet", "pass", "fail", "not-recovered", "inconclusive", "several", "search"} {
		in := saved(t, name)
		documents := []*report.Document{LoadTest(in), LoadTest(subject.Input{Name: name, Series: in.Series})}
		for i := range in.Faults {
			d, err := Fault(in, in.Faults[i].Name)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, d)
		}
		for _, d := range documents {
			var value any
			if err := json.Unmarshal([]byte(written(t, "json", d)), &value); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(value); err != nil {
				t.Errorf("%s of %s: %v", d.Kind, name, err)
			}
		}
	}
	var wrong any
	if err := json.Unmarshal([]byte(
		`{"version":1,"kind":"Other","name":"x","redquake":"dev","state":"Complete","finding":"x"}`), &wrong); err != nil {
		t.Fatal(err)
	}
	if resolved.Validate(wrong) == nil {
		t.Error("an unknown kind is valid")
	}
}

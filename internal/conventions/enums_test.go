package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Every value that a field can have is explained in the field's description, which is what `kubectl explain` shows.
func TestEnumsAreDescribed(t *testing.T) {
	values := 0
	for kind, crd := range installed(t) {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, member := range []string{"spec", "status"} {
			values += checkEnums(t, kind+" "+member, schema.Properties[member], "")
		}
	}
	if values < 150 {
		t.Errorf("only %d values found: the walk misses the schemas", values)
	}
}

// explainedElsewhere are fields whose values are names that another field or another program defines.
var explainedElsewhere = []string{
	"RedisLoadTest status.faults[].type",            // spec.action.type of a RedisFault
	"RedisLoadTest spec.workload.http.method",       // defined by HTTP
	"RedisLoadTest spec.workload.benchmark.tests[]", // defined by redis-benchmark
}

func checkEnums(t *testing.T, path string, s apiext.JSONSchemaProps, outer string) (values int) {
	t.Helper()
	if kind, of, _ := strings.Cut(path, " "); slices.Contains(embedded[kind], of) {
		return 0
	}
	if strings.HasSuffix(path, " status.conditions") {
		return 0
	}
	for _, value := range s.Enum {
		values++
		if slices.Contains(explainedElsewhere, path) {
			continue
		}
		name := strings.Trim(string(value.Raw), `"`)
		if !strings.Contains(s.Description+outer, "\n"+name+": ") {
			t.Errorf("%s: the description does not explain %s", path, name)
		}
	}
	for name, property := range s.Properties {
		values += checkEnums(t, path+"."+name, property, "")
	}
	if s.Items != nil {
		values += checkEnums(t, path+"[]", *s.Items.Schema, s.Description)
	}
	return values
}

// Every value of an enumeration has a comment, which docs/api.md shows.
func TestConstantsAreDescribed(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"fault_*.go", "chaosmesh_types.go", "experiment_*.go", "schedule_*.go"} {
		files, err := filepath.Glob(filepath.Join(apiFolder, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				group, ok := n.(*ast.GenDecl)
				if !ok || group.Tok != token.CONST {
					return true
				}
				for _, spec := range group.Specs {
					value := spec.(*ast.ValueSpec)
					seen++
					if value.Doc == nil {
						t.Errorf("%s: constant %s has no comment above it", filepath.Base(path), value.Names[0].Name)
					}
				}
				return true
			})
		}
	}
	if seen < 60 {
		t.Errorf("only %d constants found", seen)
	}
}

package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Every value that a field of a fault can have is explained in the field's description, which is what `kubectl explain` shows.
func TestFaultEnumsAreDescribed(t *testing.T) {
	schema := installed(t)["RedisFault"].Spec.Versions[0].Schema.OpenAPIV3Schema
	values := 0
	for _, member := range []string{"spec", "status"} {
		values += checkEnums(t, member, schema.Properties[member], "")
	}
	if values < 60 {
		t.Errorf("only %d values seen: the walk misses the schema", values)
	}
}

func checkEnums(t *testing.T, path string, s apiext.JSONSchemaProps, outer string) (values int) {
	t.Helper()
	if strings.HasSuffix(path, ".target") || fromKubernetes(path) || strings.HasPrefix(path, "status.conditions") { // the load test's and Kubernetes' own types
		return 0
	}
	for _, value := range s.Enum {
		values++
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

// Every constant of a fault's API has a comment of its own, which is what docs/api.md shows.
func TestFaultConstantsAreDescribed(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"fault_*.go", "chaosmesh_types.go"} {
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
		t.Errorf("only %d constants seen", seen)
	}
}

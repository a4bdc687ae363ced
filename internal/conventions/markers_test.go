package conventions

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const apiFolder = "../../api/v1alpha1"

// Every field has a marker that states whether it is required, instead of relying on its JSON tag.
func TestEveryFieldIsOptionalOrRequired(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(apiFolder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "zz_generated") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, problems := markerFindings(t, filepath.Base(file), string(source))
		fields += n
		for _, p := range problems {
			t.Error(p)
		}
	}
	if fields < 100 {
		t.Errorf("only %d fields found: the walk misses the types", fields)
	}
}

// markerFindings gives the number of fields of a file's structs, and those without exactly one of the two markers or
// without a comment.
func markerFindings(t *testing.T, name, source string) (fields int, problems []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		typ, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		body, ok := typ.Type.(*ast.StructType)
		if !ok || strings.HasSuffix(typ.Name.Name, "List") { // lists have the shape that the API machinery requires
			return true
		}
		for _, field := range body.Fields.List {
			tag := ""
			if field.Tag != nil {
				tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
			}
			if tag == ",inline" {
				continue
			}
			fields++
			at := fmt.Sprintf("%s: %s, field %q", name, typ.Name.Name, tag)
			var lines []string
			if field.Doc != nil {
				for _, c := range field.Doc.List {
					lines = append(lines, strings.TrimSpace(strings.TrimPrefix(c.Text, "//")))
				}
			}
			optional, required := slices.Contains(lines, "+optional"), slices.Contains(lines, "+required")
			if optional == required {
				problems = append(problems, at+": exactly one of +optional and +required is needed")
			}
			if len(lines) == 0 || strings.HasPrefix(lines[0], "+") {
				problems = append(problems, at+": no comment")
			}
		}
		return true
	})
	return fields, problems
}

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
)

// constants are the text constants of a Go file whose names match.
func constants(t *testing.T, path, names string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	matches := regexp.MustCompile(names)
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !matches.MatchString(name.Name) {
				continue
			}
			if literal, ok := spec.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, value)
			}
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s holds no constant %s", path, names)
	}
	return found
}

// Every reason and condition that an object can show is explained.
func TestReasons(t *testing.T) {
	for _, c := range []struct{ source, names, pages string }{
		{"api/v1alpha1/conditions.go", "^(Reason|Condition)", "docs/redisloadtest.md docs/redisfault.md"},
		{"internal/plan/errors.go", "^[A-Z]", "docs/redisloadtest.md"},
		{"internal/agent/protocol.go", "^Reason", "docs/redisloadtest.md"},
		{"internal/analysis/impact/doubts.go", "^[A-Z]", "docs/measuring.md"},
		{"internal/analysis/bottleneck/bottleneck.go", "^[A-Z]", "docs/measuring.md"},
	} {
		text := ""
		for path := range strings.FieldsSeq(c.pages) {
			text += read(t, path)
		}
		for _, value := range constants(t, c.source, c.names) {
			if !strings.Contains(text, "`"+value+"`") {
				t.Errorf("%s: %s of %s is not explained", c.pages, value, c.source)
			}
		}
	}
}

// Every field of a spec is in the page of its kind.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		page string
		spec any
	}{
		{"docs/redisloadtest.md", v1alpha1.RedisLoadTestSpec{}},
		{"docs/redisfault.md", v1alpha1.RedisFaultSpec{}},
	} {
		text := read(t, c.page)
		for _, field := range fields("", reflect.TypeOf(c.spec)) {
			if !strings.Contains(text, "`"+field+"`") && !(c.page == "docs/redisfault.md" && strings.HasPrefix(field, "target.")) {
				t.Errorf("%s: %s is not explained", c.page, field)
			}
		}
	}
}

// Every figure of an impact and of a summary is defined.
func TestFigures(t *testing.T) {
	text := read(t, "docs/measuring.md")
	for _, field := range fields("", reflect.TypeOf(v1alpha1.Impact{})) {
		field, _, _ = strings.Cut(field, ".")
		if field = strings.TrimSuffix(field, "[]"); field != "doubts" && field != "recovered" && !strings.Contains(text, "`"+field) {
			t.Errorf("docs/measuring.md does not define %s", field)
		}
	}
}

// fields are the paths of the leaves below t, as people write them: load.stages[].rate.
func fields(at string, t reflect.Type) []string {
	list := ""
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			list = "[]"
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[v1alpha1.RedisLoadTest]().PkgPath() {
		return []string{at}
	}
	var found []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if at != "" {
			name = at + list + "." + name
		}
		found = append(found, fields(name, t.Field(i).Type)...)
	}
	return found
}

// Every flag of the programs is in the page of the command line.
func TestFlags(t *testing.T) {
	text := read(t, "docs/cli.md")
	flag := regexp.MustCompile(`Var\w*\(&[\w.]+, "([a-z0-9-]+)"`)
	for path, least := range map[string]int{"cmd/redquake/load_flags.go": 25, "cmd/redquake/agent.go": 4, "main.go": 6} {
		found := flag.FindAllStringSubmatch(read(t, path), -1)
		if len(found) < least {
			t.Errorf("%s: only %d flags were found", path, len(found))
		}
		for _, m := range found {
			if !strings.Contains(text, "`--"+m[1]+"`") {
				t.Errorf("docs/cli.md: --%s of %s is not there", m[1], path)
			}
		}
	}
}

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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
		{
			"api/v1alpha1/conditions.go", "^(Reason|Condition)",
			"docs/redisloadtest.md docs/redisfault.md docs/redisexperiment.md docs/schedules.md",
		},
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

// Every member of a spec is in the page of its kind, and every field of an action in the page of its fault. The other
// fields are in api.md.
func TestFields(t *testing.T) {
	loadTest, fault, kinds := read(t, "docs/redisloadtest.md"), read(t, "docs/redisfault.md"), ""
	experiment, schedule := read(t, "docs/redisexperiment.md"), read(t, "docs/schedules.md")
	for _, p := range pages(t) {
		if strings.HasPrefix(p.Path, "docs/faults/") {
			kinds += p.Text
		}
	}
	for _, field := range fields("", reflect.TypeFor[v1alpha1.RedisLoadTestSpec]()) {
		if member, _, _ := strings.Cut(field, "."); !strings.Contains(loadTest, "`"+member) {
			t.Errorf("docs/redisloadtest.md: %s is not explained", member)
		}
	}
	for _, field := range fields("", reflect.TypeFor[v1alpha1.RedisExperimentSpec]()) {
		if member, _, _ := strings.Cut(strings.ReplaceAll(field, "[]", ""), "."); !strings.Contains(experiment, "`"+member) {
			t.Errorf("docs/redisexperiment.md: %s is not explained", member)
		}
	}
	for _, field := range fields("", reflect.TypeFor[v1alpha1.RedisExperimentScheduleSpec]()) {
		if member, _, _ := strings.Cut(field, "."); !strings.Contains(schedule, "`"+member) {
			t.Errorf("docs/schedules.md: %s is not explained", member)
		}
	}
	for _, field := range fields("", reflect.TypeFor[v1alpha1.RedisFaultSpec]()) {
		member, _, of := strings.Cut(field, ".")
		if !strings.Contains(fault, "`"+member) {
			t.Errorf("docs/redisfault.md: %s is not explained", member)
		}
		if of && member == "action" && field != "action.type" && !strings.Contains(kinds, "`"+field+"`") {
			t.Errorf("docs/faults: %s is not explained", field)
		}
	}
}

// Every field that a page names by its path exists.
func TestNamedFields(t *testing.T) {
	known, members := map[string]bool{}, map[string]bool{}
	for _, part := range []reflect.Type{
		reflect.TypeFor[v1alpha1.RedisLoadTestSpec](), reflect.TypeFor[v1alpha1.RedisFaultSpec](),
		reflect.TypeFor[v1alpha1.RedisLoadTestStatus](), reflect.TypeFor[v1alpha1.RedisFaultStatus](),
		reflect.TypeFor[v1alpha1.RedisExperimentSpec](), reflect.TypeFor[v1alpha1.RedisExperimentStatus](),
		reflect.TypeFor[v1alpha1.RedisExperimentScheduleSpec](), reflect.TypeFor[v1alpha1.RedisExperimentScheduleStatus](),
	} {
		for _, field := range fields("", part) {
			steps := strings.Split(strings.ReplaceAll(field, "[]", ""), ".")
			members[steps[0]] = true
			for n := range steps {
				known[strings.Join(steps[:n+1], ".")] = true
			}
		}
	}
	path := regexp.MustCompile(`^(spec\.|status\.)?([a-z][A-Za-z0-9]*)((?:\[\])?\.[a-z][A-Za-z0-9]*)*(?:\[\])?$`)
	// of a parameter's path, a key of a ConfigMap, a script, of a pod, of a StatefulSet, of operators' resources
	others := regexp.MustCompile(
		`^(faults\.(kill\.|json\.gz$)|history\.json\.gz$|run\.sh$|status\.containerStatuses|` +
			`spec\.replicas$|redis\.(redis\.opstreelabs|customConfig|replicas|command))`)
	checked := 0
	for _, p := range pages(t) {
		for _, line := range p.Prose {
			for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
				named := path.FindStringSubmatch(m[1])
				if named == nil || p.Path == "docs/api.md" || others.MatchString(m[1]) {
					continue
				}
				if named[1] == "" && (named[3] == "" || !members[named[2]]) {
					continue // a word, or a path of another object
				}
				checked++
				field := strings.TrimPrefix(strings.ReplaceAll(m[1], "[]", ""), named[1])
				if !known[field] {
					t.Errorf("%s names %s, which is not a field", p.Path, m[1])
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d fields were found", checked)
	}
}

// Every figure of an impact and of a summary is defined.
func TestFigures(t *testing.T) {
	text := read(t, "docs/measuring.md")
	for _, field := range fields("", reflect.TypeOf(v1alpha1.Impact{})) {
		field, _, _ = strings.Cut(field, ".")
		if field = strings.TrimSuffix(field, "[]"); field != "doubts" && field != "recovered" &&
			!strings.Contains(text, "`"+field) {
			t.Errorf("docs/measuring.md does not define %s", field)
		}
	}
}

// fields are the paths of the leaves below t, in the notation of the docs: load.stages[].rate.
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
		if name == "" { // the fields of an embedded struct
			found = append(found, fields(at, t.Field(i).Type)...)
			continue
		}
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
	for path, least := range map[string]int{
		"cmd/redquake/internal/loadflags/flags.go": 25,
		"cmd/redquake/internal/loadflags/draws.go": 10,
		"cmd/redquake/internal/load/agent.go":      4,
		"main.go":                                  6,
	} {
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

// The layout in CONTRIBUTING.md names the folder of every package, tools and parts of the lab apart.
func TestLayout(t *testing.T) {
	_, layout, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Layout\n")
	layout, _, _ = strings.Cut(layout, "\n## ")
	packages := 0
	for _, folder := range []string{"api", "cmd", "controllers", "internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) == 0 {
				return nil
			}
			packages++
			if !regexp.MustCompile("`([\\w./]*/)?" + regexp.QuoteMeta(filepath.Base(path)) + "`").MatchString(layout) {
				t.Errorf("%s is not in the layout of CONTRIBUTING.md", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if packages < 100 {
		t.Errorf("only %d packages were found", packages)
	}
}

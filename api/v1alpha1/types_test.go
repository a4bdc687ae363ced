package v1alpha1_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		"RedisLoadTest", "RedisLoadTestList", "RedisFault", "RedisFaultList", "RedisExperiment",
		"RedisExperimentList", "RedisExperimentSchedule", "RedisExperimentScheduleList",
	} {
		if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind)) {
			t.Errorf("%s is not known", kind)
		}
	}
}

// The Go types know every field that the samples use.
func TestSamplesDecode(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var meta metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if meta.APIVersion != v1alpha1.GroupVersion.String() {
				continue
			}
			into := map[string]any{
				"RedisLoadTest":           &v1alpha1.RedisLoadTest{},
				"RedisFault":              &v1alpha1.RedisFault{},
				"RedisExperiment":         &v1alpha1.RedisExperiment{},
				"RedisExperimentSchedule": &v1alpha1.RedisExperimentSchedule{},
			}[meta.Kind]
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			decoded[meta.Kind]++
		}
	}
	if decoded["RedisLoadTest"] == 0 || decoded["RedisFault"] == 0 || decoded["RedisExperiment"] == 0 ||
		decoded["RedisExperimentSchedule"] == 0 {
		t.Errorf("samples of each kind: %v, want some of all", decoded)
	}
}

// A figure of 0 is a result and is written; only what was not measured is left out.
func TestZeroFiguresAreWritten(t *testing.T) {
	tests := []struct {
		name    string
		figures any
		want    []string
	}{
		{"summary", v1alpha1.LoadSummary{}, []string{"requests", "errors", "failed", "unknown", "dropped"}},
		{"operation", v1alpha1.OperationSummary{}, []string{"requests", "errors"}},
		{"impact", v1alpha1.Impact{}, []string{"recovered", "lostRequests", "errors"}},
		{"load pods", v1alpha1.LoadPodsStatus{}, []string{"desired", "ready"}},
		{"redis", v1alpha1.RedisFacts{}, []string{"evictedKeys", "rejectedConnections", "restarts"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			raw, err := json.Marshal(test.figures)
			if err != nil {
				t.Fatal(err)
			}
			var written map[string]any
			if err := json.Unmarshal(raw, &written); err != nil {
				t.Fatal(err)
			}
			for _, figure := range test.want {
				if _, ok := written[figure]; !ok {
					t.Errorf("%s is left out of %s", figure, raw)
				}
			}
		})
	}
}

// The API server refuses a status whose reason has another form (metav1.Condition), and with it everything else that
// was to be stored.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func TestReasonsHaveTheirForm(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		constant := spec.Names[0].Name
		if !conditionReason.MatchString(value) {
			t.Errorf("%s = %q is not a condition's type or reason", constant, value)
		}
		prefix, _, _ := strings.Cut(constant, value) // Condition... and Reason... may share a word
		if other, twice := named[prefix+value]; twice {
			t.Errorf("%s and %s are both %q", other, constant, value)
		}
		named[prefix+value] = constant
		return true
	})
	if len(named) < 20 {
		t.Errorf("only %d constants seen", len(named))
	}
}

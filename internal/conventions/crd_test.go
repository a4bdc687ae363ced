// Package conventions checks the API against its conventions: the CRDs that are installed and the markers in the Go
// types.
// The rules are those of the Kubernetes API conventions and of kube-api-linter; breaking one is a breaking change
// later.
package conventions

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

const crdFolder = "../../config/crd/bases"

// exceptions are paths of Kubernetes' own types, with the rules that they break and why that is acceptable.
var exceptions = []struct {
	path   string // everything at and below it
	rules  []string
	reason string
}{
	{
		".podSelector",
		[]string{ruleMaxItems, ruleStringBounded, ruleMapBounded},
		"metav1.LabelSelector: bounded by what a label may be, when it is parsed",
	},
	{
		".podTemplate.patch",
		[]string{ruleFreeForm},
		"a patch of corev1.PodTemplateSpec: the operator decodes what it makes of a template strictly, up to 16 KiB, and " +
			"the API server checks that by a dry run",
	},
	{
		"spec.observe.pods[].selector",
		[]string{ruleMaxItems, ruleStringBounded, ruleMapBounded},
		"metav1.LabelSelector: bounded by what a label may be, when it is parsed",
	},
	{
		"spec.pods.resources",
		[]string{ruleMaxItems, ruleStringBounded, ruleMapBounded, ruleDescribedName},
		"corev1.ResourceRequirements: checked by the API server when the load pods' Job is made",
	},
	{
		"spec.pods.tolerations[]",
		[]string{ruleStringBounded, ruleIntegerBounded, ruleDescribedName},
		"corev1.Toleration: checked by the API server when the load pods' Job is made",
	},
	{
		"spec.pods.nodeSelector{}",
		[]string{ruleStringBounded},
		"no marker reaches a map's values; one that is too long matches no node",
	},
	{
		"spec.pods.affinity",
		[]string{ruleMaxItems, ruleStringBounded, ruleIntegerBounded, ruleMapBounded, ruleDescribedName},
		"corev1.Affinity: checked by the API server when the load pods' Job is made",
	},
	{
		"spec.pods.topologySpreadConstraints[]",
		[]string{ruleMaxItems, ruleStringBounded, ruleIntegerBounded, ruleMapBounded, ruleDescribedName},
		"corev1.TopologySpreadConstraint: checked by the API server when the load pods' Job is made",
	},
	{
		"spec.probePods.resources",
		[]string{ruleMaxItems, ruleStringBounded, ruleMapBounded, ruleDescribedName},
		"corev1.ResourceRequirements: checked by the API server when the load pods' Job is made",
	},
	{
		"spec.probePods.tolerations[]",
		[]string{ruleStringBounded, ruleIntegerBounded, ruleDescribedName},
		"corev1.Toleration: checked by the API server when the load pods' Job is made",
	},
	{
		"spec.probePods.nodeSelector{}",
		[]string{ruleStringBounded},
		"no marker reaches a map's values; one that is too long matches no node",
	},
	{
		"spec.probePods.affinity",
		[]string{ruleMaxItems, ruleStringBounded, ruleIntegerBounded, ruleMapBounded, ruleDescribedName},
		"corev1.Affinity: checked by the API server when the load pods' Job is made",
	},
	{
		"spec.probePods.topologySpreadConstraints[]",
		[]string{ruleMaxItems, ruleStringBounded, ruleIntegerBounded, ruleMapBounded, ruleDescribedName},
		"corev1.TopologySpreadConstraint: checked by the API server when the load pods' Job is made",
	},
}

// embedded are the specs of other kinds in a kind: they are checked where they belong.
var embedded = map[string][]string{
	"RedisExperiment":         {"spec.template.spec", "spec.faults[].spec"},
	"RedisExperimentSchedule": {"spec.template.spec"},
}

func TestSchemas(t *testing.T) {
	type use struct {
		exception int
		rule      string
	}
	used := map[use]bool{}
	for _, crd := range installed(t) {
		for _, v := range crd.Spec.Versions {
			for _, f := range findings("", *v.Schema.OpenAPIV3Schema) {
				if slices.ContainsFunc(embedded[crd.Spec.Names.Kind], func(path string) bool {
					return strings.HasPrefix(f.path,
						path+".")
				}) {
					continue
				}
				if i := exempt(f); i >= 0 {
					used[use{i, f.rule}] = true
					continue
				}
				t.Errorf("%s %s: %s", crd.Spec.Names.Kind, v.Name, f)
			}
		}
	}
	for i, e := range exceptions {
		for _, rule := range e.rules {
			if !used[use{i, rule}] {
				t.Errorf("exception %s is unused: %s", e.path, rule)
			}
		}
	}
}

// exempt gives the index of the exception that covers a finding, or -1.
func exempt(f finding) int {
	for i, e := range exceptions {
		under := strings.HasPrefix(f.path, e.path)
		if strings.HasPrefix(e.path, ".") {
			under = strings.Contains(f.path, e.path)
		}
		if under && slices.Contains(e.rules, f.rule) {
			return i
		}
	}
	return -1
}

// The output of `kubectl get`, which users rely on.
var shapes = []shape{
	{"RedisLoadTest", "rlt", []column{
		{"Status", 0},
		{"Progress", 0},
		{"TPS", 0},
		{"P99", 0},
		{"Errors", 0},
		{"Trend", 0},
		{"Verdict", 0},
		{"Age", 0},
		{"Bottleneck", 1},
		{"Faults", 1},
		{"LostWrites", 1},
		{"Redis", 1},
		{"Message", 1},
	}},
	{"RedisFault", "rfault", []column{
		{"Type", 0},
		{"Status", 0},
		{"Target", 0},
		{"Effect", 0},
		{"Dip", 0},
		{"Outage", 0},
		{"Recovery", 0},
		{"LostWrites", 0},
		{"Verdict", 0},
		{"Age", 0},
		{"WhileActive", 1},
		{"LoadTest", 1},
		{"Message", 1},
	}},
	{"RedisExperiment", "rexp", []column{
		{"Status", 0},
		{"Progress", 0},
		{"Cells", 0},
		{"Worse", 0},
		{"Verdict", 0},
		{"Next", 0},
		{"Age", 0},
		{"Regressed", 1},
		{"ExpectedEnd", 1},
		{"Message", 1},
	}},
	{"RedisExperimentSchedule", "rexps", []column{
		{"Schedule", 0},
		{"Status", 0},
		{"Last", 0},
		{"Verdict", 0},
		{"Regressed", 0},
		{"Next", 0},
		{"Age", 0},
		{"Message", 1},
	}},
}

func TestShapes(t *testing.T) {
	crds := installed(t)
	if len(crds) != len(shapes) {
		t.Errorf("%d CRDs, want %d: each kind needs an entry in shapes", len(crds), len(shapes))
	}
	for _, want := range shapes {
		crd, ok := crds[want.kind]
		if !ok {
			t.Errorf("no CRD of %s", want.kind)
			continue
		}
		for _, f := range shapeFindings(crd, want) {
			t.Errorf("%s: %s", want.kind, f)
		}
	}
}

// A generated CRD is sorted, so only the Go type shows that conditions come first.
func TestConditionsComeFirst(t *testing.T) {
	for _, status := range []any{
		v1alpha1.RedisLoadTestStatus{},
		v1alpha1.RedisFaultStatus{},
		v1alpha1.RedisExperimentStatus{},
		v1alpha1.RedisExperimentScheduleStatus{},
	} {
		typ := reflect.TypeOf(status)
		first := typ.Field(0)
		if first.Name != "Conditions" || first.Type != reflect.TypeFor[[]metav1.Condition]() {
			t.Errorf("%s begins with %s %s, want Conditions []metav1.Condition", typ.Name(), first.Name, first.Type)
		}
	}
	for _, crd := range installed(t) {
		conditions := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
		if conditions.XListType == nil || *conditions.XListType != "map" ||
			!reflect.DeepEqual(conditions.XListMapKeys, []string{"type"}) {
			t.Errorf("%s: conditions are not a map by type", crd.Spec.Names.Kind)
		}
	}
}

// installed reads the generated CRDs, by kind.
func installed(t *testing.T) map[string]*apiext.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no CRD in %s (%v): run make manifests", crdFolder, err)
	}
	crds := make(map[string]*apiext.CustomResourceDefinition, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiext.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		crds[crd.Spec.Names.Kind] = crd
	}
	return crds
}

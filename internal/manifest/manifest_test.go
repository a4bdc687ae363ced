package manifest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
)

const loadTest = `
apiVersion: redquake.dev/v1alpha1
kind: RedisLoadTest
metadata: {name: checkout}
spec:
  target: {addresses: ["127.0.0.1:6379"]}
  load: {users: 10, duration: 30s}
  workload: {ranking: {members: 1000}}
`

func TestDecodeSetsDefaults(t *testing.T) {
	test := &v1alpha1.RedisLoadTest{Status: v1alpha1.RedisLoadTestStatus{Progress: 7}}
	if err := manifest.Decode([]byte(loadTest+"status: {progress: 5}\n"), test); err != nil {
		t.Fatal(err)
	}
	if test.Name != "checkout" || test.Namespace != "" || test.Status.Progress != 0 {
		t.Errorf("metadata %+v, status %+v", test.ObjectMeta, test.Status)
	}
	ranking := &v1alpha1.RankingWorkload{
		Members:     1000,
		ScoreSpread: 100_000,
		FindCount:   100,
		Weights:     &v1alpha1.RankingWeights{Set: 1, Get: 1, Find: 1, FindByOrder: 1},
	}
	if diff := cmp.Diff(ranking, test.Spec.Workload.Ranking); diff != "" {
		t.Error(diff)
	}
	pods := v1alpha1.LoadPods{
		Count:         1,
		Lost:          v1alpha1.LostPodFail,
		StartDeadline: metav1.Duration{Duration: 5 * time.Minute},
	}
	if diff := cmp.Diff(pods, test.Spec.Pods); diff != "" {
		t.Error(diff)
	}

	fault := &v1alpha1.RedisFault{}
	document := `{"apiVersion":"redquake.dev/v1alpha1","kind":"RedisFault","metadata":{"generateName":"kill-"},` +
		`"spec":{"loadTestRef":{"name":"a"},"action":{"type":"PodKill"}}}`
	if err := manifest.Decode([]byte(document), fault); err != nil {
		t.Fatal(err)
	}
	if fault.Spec.RecoveryDeadline.Duration != 2*time.Minute || fault.Name != "" {
		t.Errorf("decoded %+v", fault)
	}
}

// Each error names the field, what is wrong and what is allowed.
func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ name, old, with, want string }{
		{"unknown field", "users: 10", "userz: 10", `unknown field "spec.load.userz"`},
		{
			"two unknown fields", "users: 10", "userz: 10, rat: 3",
			`unknown field "spec.load.rat", unknown field "spec.load.userz"`,
		},
		{"unknown metadata", "name: checkout", "nam: checkout", `unknown field "metadata.nam"`},
		{"duplicate field", "users: 10", "users: 10, users: 11", `line 7: key "users" already set in map`},
		{"no YAML", "users: 10", "users: [", "did not find expected"},
		{"not an object", loadTest, "- a", "is not an object: "},
		{
			"another kind", "RedisLoadTest", "RedisFault",
			"apiVersion and kind: are redquake.dev/v1alpha1 and RedisFault, must be redquake.dev/v1alpha1 and RedisLoadTest",
		},
		{"another version", "v1alpha1", "v9", "apiVersion and kind: are redquake.dev/v9 and "},
		{"metadata of another type", "name: checkout", "labels: 1", "metadata: cannot unmarshal number"},
		{
			"name that is none", "name: checkout", "name: Checkout",
			`metadata.name: Invalid value: "Checkout": a lowercase RFC 1123 subdomain`,
		},
		{"no name", "name: checkout", "", "metadata.name: Required value: name or generateName is required"},
		{
			"name without room for children", "name: checkout", "name: a.b",
			"the name must be at most 52 characters long and hold no dot",
		},
		{
			"another type", "users: 10", "users: many",
			`spec.load.users: Invalid value: "string": spec.load.users in body must be of type integer`,
		},
		{
			"number for a duration", "30s", "30",
			`spec.load.duration: Invalid value: "integer": spec.load.duration in body must be of type string`,
		},
		{"missing", "members: 1000", "findCount: 5", "spec.workload.ranking.members: Required value"},
		{
			"enumeration", "target: {", "target: {topology: Ring, ",
			`spec.target.topology: Unsupported value: "Ring": supported values: "Auto", "Standalone"`,
		},
		{
			"minimum", "members: 1000", "members: 0",
			"* spec.workload.ranking.members: Invalid value: 0: spec.workload.ranking.members in body should be greater than or equal to 1",
		},
		{
			"pattern", `"127.0.0.1:6379"`, "redis",
			`spec.target.addresses[0]: Invalid value: "redis": spec.target.addresses[0] in body should match`,
		},
		{"set", `"127.0.0.1:6379"`, `"a:1", "a:1"`, `spec.target.addresses[1]: Duplicate value: "a:1"`},
		{"rule of a value", "30s", "10ms", `must be between 1s and 168h`},
		{
			"rule of an object", "users: 10, ", "",
			"spec.load: Invalid value: set users (closed loop), rate (open loop), stages or search",
		},
		{
			"no target", "  target: {addresses: [\"127.0.0.1:6379\"]}\n", "",
			"spec: Invalid value: set target: only workload.http",
		},
		{
			"rule with a default", "members: 1000", "members: 99",
			"spec.workload.ranking: Invalid value: findCount must not be above members",
		},
		{"rule of all", "  target:", "  pods: {count: 11}\n  target:", "spec.load.users must be at least spec.pods.count"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := manifest.Decode([]byte(strings.Replace(loadTest, tt.old, tt.with, 1)), &v1alpha1.RedisLoadTest{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is\n%v\nwant one that contains\n%s", err, tt.want)
			}
		})
	}
}

// Several problems are listed as kubectl lists them.
func TestProblemsAreListed(t *testing.T) {
	text := strings.NewReplacer("users: 10", "users: 0", "30s", "0s").Replace(loadTest)
	err := manifest.Decode([]byte(text), &v1alpha1.RedisLoadTest{})
	want := []string{
		`the RedisLoadTest "checkout" is invalid:`, "* spec.load.users: ", "* spec.load.duration: ",
		"* spec.load.users must be",
	}
	if err == nil {
		t.Fatal("nothing is refused")
	}
	lines := strings.Split(err.Error(), "\n")
	for _, prefix := range want {
		found := false
		for _, line := range lines {
			found = found || strings.HasPrefix(line, prefix)
		}
		if !found {
			t.Errorf("no line begins with %q:\n%v", prefix, err)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("there are %d lines:\n%v", len(lines), err)
	}
}

func TestAdmitOfAnObjectMadeInGo(t *testing.T) {
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "made", Namespace: "shop"}}
	test.Spec.Target.Addresses = []string{"a:1"}
	test.Spec.Load.Rate = new(int32(5))
	test.Spec.Workload.Benchmark = &v1alpha1.BenchmarkWorkload{Tests: []v1alpha1.BenchmarkTest{"set"}}
	if err := manifest.Admit(test); err == nil ||
		!strings.Contains(err.Error(), "spec.load: Invalid value: set duration or requests: the load must end") {
		t.Errorf("a load without an end: %v", err)
	}
	if test.Spec.Pods.Count != 0 {
		t.Errorf("what is refused was changed: %+v", test.Spec.Pods)
	}
	test.Spec.Load.Requests = new(int64(10))
	if err := manifest.Admit(test); err != nil {
		t.Fatal(err)
	}
	if test.Namespace != "shop" || test.Spec.Client.Pipeline != 1 || *test.Spec.Probe.Rate != 100 {
		t.Errorf("admitted %+v", test)
	}
}

func TestDefaultChecksNothingAndKeepsTheStatus(t *testing.T) {
	fault := &v1alpha1.RedisFault{
		Spec:   v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: "Flood"}},
		Status: v1alpha1.RedisFaultStatus{ObservedGeneration: 3},
	}
	if err := manifest.Default(fault); err != nil {
		t.Fatal(err)
	}
	if fault.Status.ObservedGeneration != 3 || fault.Spec.Trigger.Timeout.Duration != 5*time.Minute {
		t.Errorf("defaulted %+v", fault)
	}
}

// The tests of the command line cover files with several documents, of which one is a RedisLoadTest.
func TestReadLoadTestNeedsOne(t *testing.T) {
	if _, err := manifest.ReadLoadTest(strings.NewReader("kind: ConfigMap\n"), nil); err == nil ||
		err.Error() != "contains no RedisLoadTest of redquake.dev/v1alpha1" {
		t.Error(err)
	}
	if _, err := manifest.ReadLoadTest(strings.NewReader(loadTest+"---"+loadTest), nil); err == nil ||
		!strings.Contains(err.Error(), "more than one") {
		t.Error(err)
	}
}

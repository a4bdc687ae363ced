package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
)

const customizationsFolder = "../../../config/argocd/resource_customizations/" + group

// objects are those that the operator has written in tests, by kind and state.
func objects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(customizationsFolder, "*", "testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if text, err = yaml.YAMLToJSON(text); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := o.UnmarshalJSON(text); err != nil { // whole numbers are int64 then
			t.Fatalf("%s: %v", path, err)
		}
		all[o.GetKind()+"/"+strings.TrimSuffix(filepath.Base(path), ".yaml")] = o
	}
	return all
}

// wanted is what tools conclude from an object.
type wanted struct {
	health  string   // Argo CD
	message string   // part of its message
	flux    string   // kstatus
	actions []string // of Argo CD
}

var (
	begin = []string{"abort", "suspend"}
	end   = []string{"rerun"}
)

// states are all states of which there is an object.
var states = map[string]wanted{
	"RedisLoadTest/new":       {"Progressing", "waiting for the operator", "InProgress", begin},
	"RedisLoadTest/running":   {"Progressing", "", "InProgress", begin},
	"RedisLoadTest/passed":    {"Healthy", "", "Current", end},
	"RedisLoadTest/missed":    {"Degraded", "verdict Fail: ", "Current", end},
	"RedisLoadTest/aborted":   {"Degraded", "verdict Inconclusive: ", "Current", end},
	"RedisLoadTest/failed":    {"Degraded", "gone", "Failed", end},
	"RedisLoadTest/restored":  {"Suspended", "redquake.dev/begun-as-", "Current", end},
	"RedisLoadTest/suspended": {"Suspended", "", "Current", []string{"abort", "resume"}},

	"RedisFault/new":           {"Progressing", "waiting for the operator", "InProgress", begin},
	"RedisFault/waiting":       {"Progressing", "", "InProgress", begin},
	"RedisFault/active":        {"Progressing", "", "InProgress", []string{"abort"}},
	"RedisFault/passed":        {"Healthy", "", "Current", end},
	"RedisFault/lasted":        {"Healthy", "", "Current", end},
	"RedisFault/dryrun":        {"Healthy", "", "Current", end},
	"RedisFault/missed":        {"Degraded", "verdict Fail: ", "Current", end},
	"RedisFault/not-recovered": {"Degraded", "verdict Fail: ", "Current", end},
	"RedisFault/aborted":       {"Degraded", "verdict Inconclusive: ", "Current", end},
	"RedisFault/failed":        {"Degraded", "gone", "Failed", end},
	"RedisFault/restored":      {"Suspended", "redquake.dev/begun-as-", "Current", end},
	"RedisFault/suspended":     {"Suspended", "", "Current", []string{"abort", "resume"}},

	"RedisExperiment/new":       {"Progressing", "waiting for the operator", "InProgress", begin},
	"RedisExperiment/running":   {"Progressing", "", "InProgress", begin},
	"RedisExperiment/passed":    {"Healthy", "", "Current", end},
	"RedisExperiment/missed":    {"Degraded", "verdict Fail: ", "Current", end},
	"RedisExperiment/aborted":   {"Degraded", "verdict Inconclusive: ", "Current", end},
	"RedisExperiment/failed":    {"Degraded", "there is no field latency in client", "Failed", end},
	"RedisExperiment/restored":  {"Suspended", "redquake.dev/begun-as-", "Current", end},
	"RedisExperiment/suspended": {"Suspended", "", "Current", []string{"abort", "resume"}},

	"RedisExperimentSchedule/new":       {"Progressing", "waiting for the operator", "InProgress", []string{"suspend"}},
	"RedisExperimentSchedule/waiting":   {"Healthy", "the next run is due at", "Current", []string{"suspend"}},
	"RedisExperimentSchedule/passed":    {"Healthy", "the next run is due at", "Current", []string{"suspend"}},
	"RedisExperimentSchedule/running":   {"Healthy", "nightly-", "Current", []string{"suspend"}},
	"RedisExperimentSchedule/regressed": {"Degraded", "since nightly-", "Current", []string{"suspend"}},
	"RedisExperimentSchedule/suspended": {"Suspended", "spec.suspend", "Current", []string{"resume"}},
	"RedisExperimentSchedule/invalid": {
		"Degraded",
		"there is no field latency in client",
		"Failed",
		[]string{"suspend"},
	},
}

// What Argo CD and Flux conclude from an object in each state.
func TestStates(t *testing.T) {
	t.Parallel()
	all := objects(t)
	for name := range states {
		if all[name] == nil {
			t.Errorf("there is no object of %s", name)
		}
	}
	for name, o := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, known := states[name]
			if !known {
				t.Fatal("it is not known what tools are to conclude")
			}
			admit(t, o)
			health := run(t, script(t, o, "health.lua"), o)
			if health["status"] != want.health || !strings.Contains(fmt.Sprint(health["message"]), want.message) ||
				health["message"] == "" {
				t.Errorf("Argo CD: %v, want %s with %q", health, want.health, want.message)
			}
			result, err := status.Compute(o)
			if err != nil || result.Status.String() != want.flux {
				t.Errorf("kstatus: %+v, %v; want %s", result, err, want.flux)
			}
			var actions []string
			for action := range run(t, script(t, o, "actions/discovery.lua"), o) {
				actions = append(actions, action)
			}
			if slices.Sort(actions); !slices.Equal(actions, want.actions) {
				t.Errorf("actions %v, want %v", actions, want.actions)
			}
		})
	}
}

// Each script exists, and argocd-cm.yaml has all of them.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	data, err := customizations(customizationsFolder)
	if err != nil {
		t.Fatal(err)
	}
	runs := []string{"abort", "rerun", "resume", "suspend"}
	for kind, want := range map[string][]string{
		"RedisLoadTest":           runs,
		"RedisFault":              runs,
		"RedisExperiment":         runs,
		"RedisExperimentSchedule": {"resume", "suspend"},
	} {
		if !strings.Contains(data["resource.customizations.health."+group+"_"+kind], "return hs") {
			t.Errorf("%s has no health", kind)
		}
		var actions struct {
			Discovery   string              `json:"discovery.lua"`
			Definitions []map[string]string `json:"definitions"`
		}
		if err := yaml.UnmarshalStrict([]byte(data["resource.customizations.actions."+group+"_"+kind]),
			&actions); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range actions.Definitions {
			if names = append(names, d["name"]); d["action.lua"] == "" {
				t.Errorf("%s: action %s has no script", kind, d["name"])
			}
		}
		if !slices.Equal(names, want) || actions.Discovery == "" {
			t.Errorf("%s: actions %v, want %v", kind, names, want)
		}
	}
}

// Actions change nothing but their switch.
func TestSwitches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ of, action, want string }{
		{"RedisLoadTest/suspended", "abort", "abort true"},
		{"RedisLoadTest/suspended", "suspend", "suspend true"},
		{"RedisLoadTest/suspended", "resume", "suspend false"},
		{"RedisExperimentSchedule/waiting", "suspend", "suspend true"},
		{"RedisExperimentSchedule/suspended", "resume", "suspend false"},
	} {
		action, want, o := test.action, test.want, objects(t)[test.of]
		changed := run(t, script(t, o, "actions/"+action+"/action.lua"), o)
		before, after := o.Object["spec"].(map[string]any), changed["spec"].(map[string]any)
		field, _, _ := strings.Cut(want, " ")
		if got := fmt.Sprint(field, " ", after[field]); got != want {
			t.Errorf("%s of %s: %s, want %s", action, test.of, got, want)
		}
		before[field], after[field] = nil, nil
		if a, b := asJSON(t, before), asJSON(t, after); a != strings.ReplaceAll(b, "[]", "{}") {
			t.Errorf("%s of %s changes\n%s\nto\n%s", action, test.of, a, b)
		}
	}
}

// A rerun is a new object with the same spec, without what ended the other one.
func TestRerun(t *testing.T) {
	t.Parallel()
	for name, o := range objects(t) {
		if !slices.Contains(states[name].actions, "rerun") {
			continue
		}
		created := rerun(t, o)
		if created.GetKind() != o.GetKind() || created.GetAPIVersion() != o.GetAPIVersion() ||
			created.GetNamespace() != o.GetNamespace() || created.GetName() != "" ||
			created.GetGenerateName() != o.GetName()+"-" || created.Object["status"] != nil {
			t.Errorf("%s: %v", name, created.Object)
		}
		if states[name].flux != "Failed" { // what has failed could not work
			admit(t, created)
		}
		if again := rerun(t, created); again.GetGenerateName() != o.GetName()+"-" {
			t.Errorf("%s: the rerun of a rerun is named %s", name, again.GetGenerateName())
		}
		was, is := o.Object["spec"].(map[string]any), created.Object["spec"].(map[string]any)
		for _, field := range []string{"abort", "suspend"} {
			if is[field] != nil {
				t.Errorf("%s: %s is %v", name, field, is[field])
			}
			delete(was, field)
		}
		if a, b := asJSON(t, withoutEmpty(was)), asJSON(t, is); a != b {
			t.Errorf("%s: the spec\n%s\nbecomes\n%s", name, a, b)
		}
	}
}

// admit checks an object as the API server does.
func admit(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	o = o.DeepCopy()
	o.SetName(o.GetGenerateName() + "abcde")
	var into manifest.Object
	switch o.GetKind() {
	case "RedisLoadTest":
		into = &v1alpha1.RedisLoadTest{}
	case "RedisFault":
		into = &v1alpha1.RedisFault{}
	case "RedisExperiment":
		into = &v1alpha1.RedisExperiment{}
	case "RedisExperimentSchedule":
		into = &v1alpha1.RedisExperimentSchedule{}
	}
	if err := manifest.Decode([]byte(asJSON(t, o.Object)), into); err != nil {
		t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// What Lua cannot copy is not lost silently.
func TestRerunOfEmptyObjects(t *testing.T) {
	t.Parallel()
	o := objects(t)["RedisFault/passed"]
	set := func(value map[string]any) {
		if err := unstructured.SetNestedMap(o.Object, value, "spec", "action", "podTemplate", "patch", "spec"); err != nil {
			t.Fatal(err)
		}
	}
	set(map[string]any{"priorityClassName": "high"})
	if patch, _, _ := unstructured.NestedString(rerun(t, o).Object, "spec", "action", "podTemplate", "patch", "spec",
		"priorityClassName"); patch != "high" {
		t.Errorf("the patch becomes %q", patch)
	}
	set(map[string]any{"volumes": []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}})
	if _, err := execute(script(t, o, "actions/rerun/action.lua"), o); err == nil ||
		!strings.Contains(err.Error(), "kubectl redquake rerun") {
		t.Errorf("%v, want the way to rerun it", err)
	}
}

func rerun(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	value, err := execute(script(t, o, "actions/rerun/action.lua"), o)
	if err != nil {
		t.Fatal(err)
	}
	list, is := value.([]any)
	if !is || len(list) != 1 {
		t.Fatalf("the action returns %v", value)
	}
	impacted := list[0].(map[string]any)
	if impacted["operation"] != "create" {
		t.Errorf("the operation is %v", impacted["operation"])
	}
	return &unstructured.Unstructured{Object: impacted["resource"].(map[string]any)}
}

func script(t *testing.T, o *unstructured.Unstructured, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(customizationsFolder, o.GetKind(), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run executes a script that returns a table.
func run(t *testing.T, script string, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	value, err := execute(script, o)
	if err != nil {
		t.Fatal(err)
	}
	if list, is := value.([]any); is && len(list) == 0 {
		return map[string]any{}
	}
	table, is := value.(map[string]any)
	if !is {
		t.Fatalf("the script returns %v, want a table", value)
	}
	return table
}

// execute runs a script as Argo CD does: with an object, a time limit, and no library but the basic one and that of
// tables.
func execute(script string, o *unstructured.Unstructured) (any, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	l.SetGlobal("obj", toLua(l, o.Object))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // Argo CD: 1 s
	defer cancel()
	l.SetContext(ctx)
	if err := l.DoString(script); err != nil {
		return nil, err
	}
	return fromLua(l.Get(-1)), nil
}

func toLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		list := l.NewTable()
		for _, item := range v {
			list.Append(toLua(l, item))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for key, member := range v {
			table.RawSetString(key, toLua(l, member))
		}
		return table
	}
	return lua.LNil
}

// fromLua is a value as JSON has it. An empty table is a list, as in Argo CD.
func fromLua(value lua.LValue) any {
	switch v := value.(type) {
	case lua.LBool:
		return bool(v)
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return float64(v)
	case *lua.LTable:
		if v.MaxN() > 0 || v.Len() == 0 && isEmpty(v) {
			list := []any{}
			for i := 1; i <= v.MaxN(); i++ {
				list = append(list, fromLua(v.RawGetInt(i)))
			}
			return list
		}
		table := map[string]any{}
		v.ForEach(func(key, member lua.LValue) { table[key.String()] = fromLua(member) })
		return table
	}
	return nil
}

func isEmpty(table *lua.LTable) bool {
	key, _ := table.Next(lua.LNil)
	return key == lua.LNil
}

// withoutEmpty is a value without empty members.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, member := range v {
			switch of := withoutEmpty(member).(type) {
			case map[string]any:
				if len(of) > 0 {
					kept[key] = of
				}
			case []any:
				if len(of) > 0 {
					kept[key] = of
				}
			default:
				kept[key] = of
			}
		}
		return kept
	case []any:
		var kept []any
		for _, item := range v {
			kept = append(kept, withoutEmpty(item))
		}
		return kept
	}
	return value
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// specOf is an experiment on one Redis; more is added to it, or replaces parts of it.
func specOf(t *testing.T, more string) *v1alpha1.RedisExperimentSpec {
	t.Helper()
	spec := &v1alpha1.RedisExperimentSpec{}
	redis := `template: {spec: {target: {service: {name: redis}}, load: {users: 10, duration: 10s}, workload: {benchmark: {tests: [set]}}}}`
	if strings.Contains(more, "template:") {
		redis = ""
	}
	for _, text := range []string{redis, `
faults:
- {name: kill, spec: {action: {type: PodKill, podKill: {gracePeriodSeconds: 30}}}}
- {name: failover, spec: {action: {type: Failover}}}
repeat: 6
order: Shuffled
`, more} {
		if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
			t.Fatal(err)
		}
	}
	return spec
}

const fsyncByUsers = `
faults: []
matrix:
- {name: appendfsync, settings: [{name: "no", config: {appendonly: "no"}}, {name: always, config: {appendonly: "yes",
  appendfsync: always}}]}
- {name: users, path: load.users, values: [10, 20, 30]}
`

func TestCells(t *testing.T) {
	t.Parallel()
	p, err := NewPlan(specOf(t, fsyncByUsers))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"appendfsync=no,users=10", "appendfsync=no,users=20", "appendfsync=no,users=30",
		"appendfsync=always,users=10", "appendfsync=always,users=20", "appendfsync=always,users=30",
	}
	if got := p.Names(); !slices.Equal(got, want) {
		t.Fatalf("cells %q, want %q", got, want)
	}
	for i, v := range p.Variants {
		if users := *v.Load.Load.Users; users != int32(10*(i%3+1)) {
			t.Errorf("%s has %d users", v.Name, users)
		}
		if v.Baseline != i%3 { // the first value of the first parameter, with the same users
			t.Errorf("%s is compared with %s", v.Name, p.BaselineOf(i))
		}
		s := v.Settings
		if len(s) != 1 || !s[0].Spec.Setting || s[0].Spec.Action.Type != v1alpha1.FaultConfig ||
			s[0].Spec.Target.Service.Name != "redis" || s[0].Spec.Select.Mode != v1alpha1.SelectAll {
			t.Errorf("%s has the settings %+v", v.Name, s)
		}
	}
	if p.BaselineRepeats != 1 || p.Runs() != 36 || p.Compared() != 3 {
		t.Errorf("%d runs, the baselines %d times in a round, %d compared", p.Runs(), p.BaselineRepeats, p.Compared())
	}
	if q := p.Question(&v1alpha1.ExperimentComparison{}); q.Design.Comparisons != 6 || q.Design.RunsPerRound != 6 ||
		q.Primary[0].Name != "throughput" || q.Primary[1].Name != "latencyP99" {
		t.Errorf("question %+v, %+v", q, q.Design)
	}
}

// One baseline for many cells runs twice in each round.
func TestBaselineOfMany(t *testing.T) {
	t.Parallel()
	p, err := NewPlan(specOf(t, fsyncByUsers+`baseline: {appendfsync: "no", users: "20"}`))
	if err != nil {
		t.Fatal(err)
	}
	if p.BaselineRepeats != 2 || p.Runs() != 42 || p.Compared() != 5 {
		t.Errorf("%d runs, the baseline %d times in a round, %d compared", p.Runs(), p.BaselineRepeats, p.Compared())
	}
	counts := map[int]int{}
	for n := range 7 {
		counts[p.Slot(n+1, 1).Variant]++
	}
	if counts[1] != 2 || len(counts) != 6 {
		t.Errorf("a round runs %v", counts)
	}
}

// Each round runs every cell, in an order of its own that the seed decides.
func TestOrder(t *testing.T) {
	t.Parallel()
	spec := specOf(t, fsyncByUsers)
	p, err := NewPlan(spec)
	if err != nil {
		t.Fatal(err)
	}
	orderOf := func(seed int64) (all []int) {
		for n := range p.Runs() {
			s := p.Slot(n+1, seed)
			if s.Number != n+1 || s.Round != n/6+1 {
				t.Fatalf("run %d is %+v", n+1, s)
			}
			all = append(all, s.Variant)
		}
		return all
	}
	first := orderOf(1)
	rounds := map[string]bool{}
	for round := range slices.Chunk(first, 6) {
		sorted := slices.Sorted(slices.Values(round))
		if !slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5}) {
			t.Errorf("a round runs %v", round)
		}
		rounds[fmt.Sprint(round)] = true
	}
	if len(rounds) < 3 {
		t.Errorf("the rounds have only %d orders", len(rounds))
	}
	if !slices.Equal(first, orderOf(1)) || slices.Equal(first, orderOf(2)) {
		t.Error("the order does not hang on the seed alone")
	}
	p.Shuffled = false
	if got := orderOf(1)[:6]; !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("in order: %v", got)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	var most time.Duration
	seen := map[time.Duration]bool{}
	for n := range 200 {
		d := Delay(7, n, 0, 10*time.Second)
		if d < 0 || d > 10*time.Second || d != Delay(7, n, 0, 10*time.Second) {
			t.Fatalf("run %d is delayed by %s", n, d)
		}
		most, seen[d] = max(most, d), true
	}
	if most < 9*time.Second || len(seen) < 150 || Delay(7, 1, 0, 0) != 0 ||
		Delay(7, 1, 0, time.Hour) == Delay(7, 1, 1, time.Hour) {
		t.Errorf("at most %s, %d different ones", most, len(seen))
	}
}

// A parameter may choose the faults of its cells, and set their fields.
func TestFaultsOfCells(t *testing.T) {
	t.Parallel()
	p, err := NewPlan(specOf(t, `
matrix:
- {name: fault, settings: [{name: none, noFaults: true}, {name: kill, faults: [kill]}, {name: both}]}
- {name: grace, path: faults.kill.action.podKill.gracePeriodSeconds, values: [0, 10]}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range p.Variants {
		var text []string
		for _, f := range v.Faults {
			text = append(text, f.Name)
			if k := f.Spec.Action.PodKill; k != nil {
				text = append(text, string(rune('0'+*k.GracePeriodSeconds/10)))
			}
		}
		got[v.Name] = strings.Join(text, " ")
	}
	for name, want := range map[string]string{
		"fault=none,grace=0":  "",
		"fault=kill,grace=0":  "kill 0",
		"fault=kill,grace=10": "kill 1",
		"fault=both,grace=10": "kill 1 failover",
	} {
		if got[name] != want {
			t.Errorf("%s has %q, want %q", name, got[name], want)
		}
	}
	if q := p.Question(&v1alpha1.ExperimentComparison{}); q.Primary[0].Name != "outage" {
		t.Errorf("primary %+v", q.Primary)
	}
}

// Settings that replace pods come first, whatever the order of the parameters.
func TestOrderOfSettings(t *testing.T) {
	t.Parallel()
	p, err := NewPlan(specOf(t, `
matrix:
- {name: fsync, settings: [{name: a, config: {appendfsync: always}}, {name: b}]}
- {name: cpu, settings: [{name: a, resources: {cpu: 500m}}, {name: b}]}
- {name: size, settings: [{name: a, replicaScale: {by: 1}, ioThreads: {count: 2},
  podTemplate: {patch: {spec: {priorityClassName: high}}}}, {name: b}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []v1alpha1.FaultType
	for _, s := range p.Variants[0].Settings {
		kinds = append(kinds, s.Spec.Action.Type)
	}
	if !slices.Equal(kinds, []v1alpha1.FaultType{"ReplicaScale", "PodTemplate", "IOThreads", "Resources", "Config"}) {
		t.Errorf("applied in the order %v", kinds)
	}
}

// A setting is one of the cell's own Redis, also if cells that share it have different ones.
func TestSettingOfTheCellsRedis(t *testing.T) {
	t.Parallel()
	for _, order := range []string{
		`[{name: hz, settings: [{name: a, config: {hz: "10"}}, {name: b, config: {hz: "20"}}]}, {name: redis,
		  path: target.service.name, values: [first, second]}]`,
		`[{name: redis, path: target.service.name, values: [first, second]}, {name: hz, settings: [{name: a,
		  config: {hz: "10"}}, {name: b, config: {hz: "20"}}]}]`,
	} {
		p, err := NewPlan(specOf(t, "faults: []\nmatrix: "+order))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range p.Variants {
			if len(v.Settings) != 1 || v.Settings[0].Spec.Target.Service.Name != v.Values["redis"] ||
				v.Load.Target.Service.Name != v.Values["redis"] {
				t.Errorf("cell %s: its setting is of %s, its load of %s", v.Name, v.Settings[0].Spec.Target.Service.Name,
					v.Load.Target.Service.Name)
			}
		}
	}
}

func TestImpossibleMatrices(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Trim(strings.Repeat("%,", 20), ",") + "]"
	for i := range 20 {
		many = strings.Replace(many, "%", "v"+string(rune('a'+i)), 1)
	}
	for _, test := range []struct{ name, more, want string }{
		{
			"unknown field", "matrix: [{name: a, path: load.userz, values: [1, 2]}]",
			"spec.matrix[0], value 1: there is no field userz in load: it has arrivals, duration, rampUp, rate,",
		},
		{
			"field of a number", "matrix: [{name: a, path: load.users.x, values: [1, 2]}]",
			"spec.matrix[0], value 1: load.users has no fields",
		},
		{"unknown root", "matrix: [{name: a, path: spec.load.users, values: [1, 2]}]", "there is no field spec: it has"},
		{
			"not a number", "matrix: [{name: a, path: load.users, values: [ten, 2]}]",
			"spec.matrix[0], value ten: load.users: the value is no JSON",
		},
		{
			"another type", `matrix: [{name: a, path: load.users, values: ["[]", 2], valueNames: [x, y]}]`,
			"spec.matrix[0], value x: load.users: the field does not take such a value (it is a number)",
		},
		{
			"unknown member", `matrix: [{name: a, path: load, values: ['{"userz": 1}', '{"users": 1}'], valueNames: [x, y]}]`,
			`spec.matrix[0], value x: load: unknown field "load.userz"`,
		},
		{
			"position", "matrix: [{name: a, path: workload.benchmark.tests.3, values: [get, set]}]",
			"spec.matrix[0], value get: workload.benchmark.tests.3: the list has 1 items",
		},
		{
			"name of an item", "matrix: [{name: a, path: workload.benchmark.tests.x, values: [get, set]}]",
			"workload.benchmark.tests is a list",
		},
		{
			"a secret that is no duration", "matrix: [{name: a, path: load.duration, values: [s3cret, 2s], valueNames: [x, y]}]",
			"spec.matrix[0], value x: load.duration: the field does not take such a value (it is a duration, such as 30s)",
		},
		{
			"fault", "matrix: [{name: a, path: faults.other.duration, values: [1s, 2s]}]",
			"spec.matrix[0].path: faults.other.duration names no field of a fault",
		},
		{"fault as a whole", "matrix: [{name: a, path: faults.kill, values: [1s, 2s]}]", "faults.kill"},
		{
			"field of a fault", "matrix: [{name: a, path: faults.kill.action.podkill, values: [1, 2]}]",
			"spec.matrix[0], value 1: faults.kill: there is no field podkill in action",
		},
		{
			"chosen fault", "matrix: [{name: a, settings: [{name: x, faults: [other]}, {name: y}]}]",
			"spec.matrix[0].settings[0].faults[0]: spec.faults has no other",
		},
		{
			"beside a fault that the cell does not have",
			"faults: [{name: kill, spec: {action: {type: PodKill}, beside: [loss]}}, {name: loss, spec: {action: {type: Hang}}}]\n" +
				"matrix: [{name: a, settings: [{name: x, faults: [kill]}, {name: y}]}]",
			"spec.faults: kill is to act beside loss, which cell a=x does not have",
		},
		{
			"beside itself by a parameter",
			"faults: [{name: kill, spec: {action: {type: PodKill}, beside: [loss]}}, {name: loss, spec: {action: {type: Hang}}}]\n" +
				"matrix: [{name: a, path: faults.kill.beside.0, values: [loss, kill]}]",
			"spec.faults: kill of cell a=kill cannot act beside itself",
		},
		{
			"name of a value", `matrix: [{name: a, path: load.duration, values: ["1 s", 2s]}]`,
			"spec.matrix[0].valueNames: the value at position 0 cannot be a name",
		},
		{
			"same value", "matrix: [{name: a, path: load.users, values: [1, 1]}]",
			"spec.matrix[0].values: the value at position 1 has the name of another one",
		},
		{
			"same path",
			"matrix: [{name: a, path: load.users, values: [1, 2]}, {name: b, path: load, values: ['{}'], valueNames: [x]}]",
			"spec.matrix[1].path: load is set by spec.matrix[0] already",
		},
		{
			"same setting",
			"matrix: [{name: a, settings: [{name: x, config: {hz: '5'}}, {name: y}]}, {name: b, settings: [{name: x, config: " +
				"{hz: '6'}}]}]", "spec.matrix: a and b of one cell both set Config",
		},
		{
			"one cell", "matrix: [{name: a, path: load.users, values: [1]}]",
			"there is one cell, and nothing to compare it with",
		},
		{
			"many cells", "matrix: [{name: a, path: workload.benchmark.tests.0, values: " + many +
				"}, {name: b, path: client.addedLatency, values: " + many + "}]",
			"spec.matrix: the combinations are more than 128 cells (20 x 20)",
		},
		{
			"many runs", "repeat: 50\nmatrix: [{name: a, path: workload.benchmark.tests.0, values: " + many +
				"}, {name: b, path: load.users, values: [1, 2, 3]}]",
			"spec.repeat: 60 cells, repeated 50 times, are 3150 runs, more than 2000",
		},
		{
			"name of a setting",
			"faults: [{name: s1, spec: {action: {type: PodKill}}}]\nmatrix: [{name: a, path: load.users, values: [1, 2]}]",
			"spec.faults[0].name: s1 is how the settings of a run are called",
		},
		{
			"baseline", "baseline: {a: '3'}\nmatrix: [{name: a, path: load.users, values: [1, 2]}]",
			"spec.baseline.a: 3 is none of its values (1, 2)",
		},
		{
			"long names", "matrix: [{name: " + strings.Repeat("a", 63) +
				", path: load.users, values: [1, 2]}, {name: b, path: client.addedLatency, values: [5ms], valueNames: [" +
				strings.Repeat("c", 63) +
				"]}, {name: " + strings.Repeat("d", 63) +
				", path: workload.benchmark.tests.0, values: [set, get], valueNames: [e, f]}, {name: g, path: load.duration, " +
				"values: [5s], valueNames: [five-seconds]}]",
			"longer than 200 bytes: shorten the names",
		},
		{
			"a fault that changes a setting",
			"faults: [{name: slow, spec: {action: {type: Config, config: {parameters: {hz: '1'}}}}}]\nmatrix: [{name: hz, " +
				"settings: [{name: as-is}, {name: '50', config: {hz: '50'}}]}]",
			"spec.faults: slow of cell hz=50 changes hz, which the setting hz=50 of the cell holds",
		},
		{
			"no Redis",
			"template: {spec: {load: {users: 1, duration: 1s}, workload: {http: {url: http://api}}}}\nfaults: []\nmatrix: " +
				"[{name: a, settings: [{name: x, config: {hz: '5'}}, {name: y}]}]",
			"spec.template.spec.target: the settings of parameter a need a Redis",
		},
		{
			"no Redis for a fault",
			"template: {spec: {load: {users: 1, duration: 1s}, workload: {http: {url: http://api}}}}\nmatrix: [{name: a, " +
				"path: load.users, values: [1, 2]}]",
			"spec.template.spec.target: fault kill needs a Redis",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, test.more)
			p, err := NewPlan(spec)
			if err == nil {
				err = p.Compares(spec.CompareTo != nil)
			}
			found, other := problem.From(err)
			if other != nil || found == nil || found.Reason != v1alpha1.ReasonInvalidSpec || !found.Lasting ||
				!strings.Contains(found.Message, test.want) || strings.Contains(found.Message, "s3cret") {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path  string
		value intstr.IntOrString
		want  string
	}{
		{"load.users", intstr.FromInt32(5), `users: 5`},
		{"load.users", intstr.FromString("5"), `users: 5`},
		{"load.users", intstr.FromString("null"), ``},
		{"load.duration", intstr.FromString("5m"), `duration: 5m0s`},
		{"objectives.minThroughput", intstr.FromInt32(3000), `minThroughput: "3000"`},
		{"abort", intstr.FromString("true"), `abort: true`},
		{"workload.benchmark.tests", intstr.FromString(`["get", "lpush"]`), "- get\n"},
		{"workload.benchmark.tests.0", intstr.FromString("get"), "- get\n"},
		{"workload.benchmark.tests.1", intstr.FromString("get"), "- set\n"},
		{"pods.nodeSelector.zone", intstr.FromString("a"), "zone: a"},
		{"pods.resources.limits.cpu", intstr.FromInt32(2), `cpu: "2"`},
		{"load", intstr.FromString(`{"rate": 7, "duration": "1s"}`), "rate: 7"},
	} {
		spec := specOf(t, "").Template.Spec
		changed, err := set(&spec, test.path, test.value)
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		text, err := yaml.Marshal(changed)
		if err != nil || !strings.Contains(string(text), test.want) ||
			test.want == "" && strings.Contains(string(text), "users:") {
			t.Errorf("%s = %s: %s, %v", test.path, test.value.String(), text, err)
		}
	}
}

// Whatever the path and the value, the result is a spec or an error.
func FuzzSet(f *testing.F) {
	f.Add("load.users", "5")
	f.Add("workload.commands.0.command.3", `"x"`)
	f.Add("pods.affinity", `{"nodeAffinity": {}}`)
	f.Fuzz(func(t *testing.T, path, value string) {
		spec := v1alpha1.RedisLoadTestSpec{}
		if changed, err := set(&spec, path, intstr.FromString(value)); (changed == nil) == (err == nil) {
			t.Errorf("%v, %v", changed, err)
		}
	})
}

// That repeats are too few is said before anything runs.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		more string
		want []string
	}{
		{"repeat: 6", nil},
		{
			"repeat: 2",
			[]string{
				"spec.repeat: 2 is too few for throughput with 6 comparisons: it needs 3",
				"spec.repeat: 2 is too few for latencyP99 with 6 comparisons: it needs 3",
			},
		},
		{"order: Sequential", []string{"spec.order: Sequential: a drift"}},
	} {
		p, err := NewPlan(specOf(t, fsyncByUsers+test.more))
		if err != nil {
			t.Fatal(err)
		}
		got := p.Warnings(p.Question(&v1alpha1.ExperimentComparison{}))
		if len(got) != len(test.want) || len(got) > 0 && !strings.HasPrefix(got[0], test.want[0]) {
			t.Errorf("%s: %q, want %q", test.more, got, test.want)
		}
	}
}

// Messages of a template name the fields of the schedule, those that they mention beside, too.
func TestInTemplate(t *testing.T) {
	for message, want := range map[string]string{
		"spec.matrix[1].path: load.rate is set by spec.matrix[0] already": "spec.template.spec.matrix[1].path: " +
			"load.rate is set by spec.template.spec.matrix[0] already",
		"spec.template.spec.target: fault kill needs a Redis": "spec.template.spec.template.spec.target: " +
			"fault kill needs a Redis",
		"spec.matrix: there is one cell (see spec.compare), in faults.k.spec.x": "spec.template.spec.matrix: there is one " +
			"cell (see spec.template.spec.compare), in faults.k.spec.x",
	} {
		if found, _ := problem.From(InTemplate(problem.Invalid("%s", message))); found.Message != want {
			t.Errorf("%s, want %s", found.Message, want)
		}
	}
	if other := errors.New("spec.x"); !errors.Is(InTemplate(other), other) || InTemplate(nil) != nil {
		t.Error("another error is changed")
	}
}

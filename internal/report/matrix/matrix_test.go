package matrix

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/overlay"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
	"github.com/redquake/redquake/internal/testing/reporttest"
)

var begin = time.Date(2026, 11, 22, 13, 10, 0, 0, time.UTC)

const fsyncSpec = `
template:
  spec:
    target: {service: {name: redis, port: 6379}}
    load: {users: 1000, duration: 90s}
    workload: {benchmark: {tests: [set]}, keyspace: {prefix: "bench:", keys: 10000}}
    verify: {acknowledgedWrites: true}
faults:
- name: kill
  spec: {action: {type: PodKill}, select: {role: Primary}, recoveryDeadline: 2m}
matrix:
- name: appendfsync
  settings:
  - {name: "no", config: {appendfsync: "no"}}
  - {name: everysec, config: {appendfsync: everysec}}
  - {name: always, config: {appendfsync: always}}
- {name: users, path: load.users, values: [1000, 2000, 3000]}
repeat: 6
order: Shuffled
compare: {figures: [throughput, latencyP99, outage, recoveryTime], require: None}
`

// simulated is an experiment whose runs have the figures that level says, with noise.
func simulated(
	t testing.TB, spec string, level func(cell map[string]string) map[string]float64, edit func(*study.Experiment),
) *study.Experiment {
	t.Helper()
	o := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: "fsync-by-users", Namespace: "redquake-demo"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	plan, err := experiment.NewPlan(&o.Spec)
	if err != nil {
		t.Fatal(err)
	}
	e := &study.Experiment{
		Object:  o,
		Plan:    plan,
		Record:  &experiment.Record{Version: experiment.RecordVersion, Cells: plan.Names()},
		Details: map[string]*study.Detail{},
	}
	o.Status.Seed = new(int64(11))
	random := rand.New(rand.NewPCG(11, 3))
	for n := 1; n <= plan.Runs(); n++ {
		slot := plan.Slot(n, 11)
		run := experiment.RecordedRun{
			Cell:     slot.Variant,
			Round:    slot.Round,
			LoadTest: fmt.Sprintf("%s-%04d", o.Name, n),
			Server:   "redis 7.0.15",
			Start:    begin.Add(time.Duration(n-1) * 2 * time.Minute),
			End:      begin.Add(time.Duration(n)*2*time.Minute - 10*time.Second),
			Values:   map[string]experiment.Value{},
		}
		figures := level(plan.Variants[slot.Variant].Values)
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			run.Values[name] = experiment.Value{Value: figures[name] * math.Exp(0.02*random.NormFloat64())}
		}
		e.Record.Runs = append(e.Record.Runs, run)
	}
	setCondition(e, v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
		fmt.Sprintf("%d runs", plan.Runs()))
	o.Status.Results = o.Name + "-experiment"
	if edit != nil {
		edit(e)
	}
	return e
}

func setCondition(e *study.Experiment, kind string, is metav1.ConditionStatus, reason, message string) {
	e.Object.Status.Conditions = append(
		slices.DeleteFunc(e.Object.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind }),
		metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message})
}

// fsync is what appendfsync costs: always two thirds of the throughput, everysec nothing.
func fsync(cell map[string]string) map[string]float64 {
	users := map[string]float64{"1000": 1, "2000": 1.13, "3000": 1.15}[cell["users"]]
	f := map[string]float64{
		"throughput":   24500 * users,
		"latencyP99":   0.0577 * users * users,
		"outage":       2.44,
		"recoveryTime": 2.59,
		"lostWrites":   0,
	}
	if cell["appendfsync"] == "always" {
		f["throughput"] *= 0.33
		f["latencyP99"] *= 3
		f["outage"] *= 0.78
	}
	return f
}

// withDetails adds curves and phases as the load tests of the runs would have them.
func withDetails(e *study.Experiment) {
	w := study.WindowOf(e.Record)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range e.Record.Runs {
		run := &e.Record.Runs[i]
		rate, outage := run.Values["throughput"].Value, run.Values["outage"].Value
		counts := make([]float64, 900)
		for k := range counts {
			counts[k] = rate / 10 * (1 + 0.02*random.NormFloat64())
			if at := float64(k)/10 - 30; at >= 0.1 && at < 0.1+outage {
				counts[k] = 0
			}
		}
		d := &study.Detail{
			Curve:    overlay.NewCurve(w, 100*time.Millisecond, counts, 30*time.Second),
			Begins:   new(68 * time.Millisecond),
			Use:      study.Use{Bottleneck: "RedisMainThread", CPU: 1040 + int64(i), MainThread: 1000},
			ReadBack: 27000,
		}
		for _, p := range []struct {
			name   string
			source string
			share  float64
		}{
			{"FirstError", "Client", .03},
			{"PodDeleted", "Kubernetes", .06},
			{"ContainerStarted", "Kubernetes", .38},
			{"DatasetLoaded", "Redis", .25},
			{"Ready", "Kubernetes", .08},
			{"FirstSuccess", "Client", .16},
			{"Recovered", "Client", .04},
		} {
			took := result.Seconds(p.share * run.Values["recoveryTime"].Value * 1e9)
			d.Phases = append(d.Phases, result.Phase{
				Name:   p.name,
				Source: p.source,
				Took:   result.BoundedSeconds{Value: took, AtLeast: took, AtMost: took},
			})
		}
		e.Details[run.LoadTest] = d
	}
}

func reported(t testing.TB, e *study.Experiment) *report.Document {
	t.Helper()
	d, err := New(e.Study(""))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// hostileText would be markup wherever it is not escaped.
const hostileText = `"'></script><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`

const twoCells = `
template:
  spec:
    target: {service: {name: redis, port: 6379}}
    load: {users: 1000, duration: 30s}
    workload: {benchmark: {tests: [set]}, keyspace: {prefix: "bench:", keys: 10000}}
matrix:
- {name: connections, path: client.connections, values: [50, 100]}
repeat: 4
order: Shuffled
compare: {figures: [throughput], require: NotWorse}
`

func steady(map[string]string) map[string]float64 {
	return map[string]float64{"throughput": 24500, "latencyP99": 0.0577, "outage": 0}
}

func worse(cell map[string]string) map[string]float64 {
	f := steady(cell)
	if cell["connections"] == "100" {
		f["throughput"] /= 2
	}
	return f
}

// states are experiments in each state in which a report may find one.
func states(t testing.TB) map[string]*study.Experiment {
	const complete = v1alpha1.ConditionComplete
	return map[string]*study.Experiment{
		"pass": simulated(t, fsyncSpec, fsync, func(e *study.Experiment) {
			withDetails(e)
			e.Record.Runs[11].Inconclusive = "its verdict is Inconclusive: LoadGeneratorSaturated: a load pod used 97% of its CPU limit"
		}),
		"fail": simulated(t, twoCells, worse, nil),
		"missed": simulated(t, twoCells, steady, func(e *study.Experiment) {
			e.Record.Runs[2].Missed, e.Record.Runs[2].Failed = true,
				"RedisLoadTest fsync-by-users-0003: ObjectivesNotMet: p99 is 57ms, more than 5ms"
		}),
		"inconclusive": simulated(t, twoCells, steady, func(e *study.Experiment) {
			for i := range e.Record.Runs {
				if r := &e.Record.Runs[i]; r.Cell == 1 && r.Round < 3 {
					r.Inconclusive = "GeneratorStalled: the load generator did not run for 1.2s"
				}
			}
		}),
		"running": simulated(t, twoCells, worse, func(e *study.Experiment) {
			e.Record.Runs = e.Record.Runs[:5]
			setCondition(e, complete, metav1.ConditionFalse, "Running", "run 6 of 8: connections=50")
		}),
		"pending": simulated(t, twoCells, worse, func(e *study.Experiment) {
			e.Record.Runs, e.Object.Status.Conditions = nil, nil
		}),
		"refused": simulated(t, twoCells, worse, func(e *study.Experiment) {
			e.Record.Runs = nil
			setCondition(e, complete, metav1.ConditionFalse, v1alpha1.ReasonRefused,
				"cell connections=100: RedisLoadTest: quota")
			setCondition(e, v1alpha1.ConditionFailed, metav1.ConditionTrue, v1alpha1.ReasonRefused,
				"cell connections=100: RedisLoadTest: quota")
		}),
		"aborted": simulated(t, twoCells, worse, func(e *study.Experiment) {
			e.Record.Runs = e.Record.Runs[:6]
			setCondition(e, complete, metav1.ConditionTrue, v1alpha1.ReasonAborted, "ended by spec.abort")
		}),
		"one cell": simulated(t,
			strings.NewReplacer("values: [50, 100]", "values: [50]", "require: NotWorse", "require: None").Replace(twoCells)+
				"compareTo: {run: before}\nobjectives: {noRegression: true}\n", steady, regressed),
		"not recovered": simulated(t,
			strings.Replace(fsyncSpec, "[throughput, latencyP99, outage, recoveryTime]", "[recoveryTime, lostWrites]", 1), fsync,
			func(e *study.Experiment) {
				for i := range e.Record.Runs {
					if r := &e.Record.Runs[i]; e.Record.Cells[r.Cell] == "appendfsync=always,users=3000" {
						r.Values["recoveryTime"] = experiment.Value{Value: 120, Censored: true}
						r.Values["lostWrites"] = experiment.Value{Value: float64(7 + r.Round)}
					}
				}
			}),
	}
}

// regressed is what the status of an experiment says that is slower than an earlier one.
func regressed(e *study.Experiment) {
	setCondition(e, v1alpha1.ConditionRegressed, metav1.ConditionTrue, v1alpha1.ReasonRegressed,
		"1 of 1 comparisons with before: connections=50: throughput 20% lower than before")
	e.Object.Status.Earlier = &v1alpha1.EarlierComparison{
		Run:   "before",
		Notes: []string{"the servers were redis 6.2.1 in before, and are redis 7.0.15 now"},
		Comparison: []v1alpha1.ComparisonResult{{
			Cell: "connections=50", Figure: "throughput", Verdict: v1alpha1.ComparisonRegressed, Reason: "Difference",
			Message: "throughput 20% lower than before", Change: "-0.2", AtLeast: "-0.25",
			AtMost: "-0.14", Confidence: "0.95", Median: "24500", BaselineMedian: "30600", Repeats: 4, BaselineRepeats: 4,
		}},
	}
}

// A report of each state has its verdict or none, a sentence, and all forms.
func TestStates(t *testing.T) {
	t.Parallel()
	schema := reporttest.Schema(t)
	for name, want := range map[string]struct {
		state   report.State
		verdict report.Verdict
		parts   []string // of the Markdown
	}{
		"pass": {
			report.Complete,
			report.Pass,
			[]string{"appendfsync always lowers the throughput by 6", "everysec is the same within 5 %", "53 of 54 runs"},
		},
		"fail": {
			report.Complete,
			report.Fail,
			[]string{"connections 100 lowers the throughput by 5", "✗ missed", "▼ worse"},
		},
		"missed": {report.Complete, report.Fail, []string{"runsThatMissAnObjective of connections", "✗ missed"}},
		"inconclusive": {
			report.Complete,
			report.Inconclusive,
			[]string{"TooManyInconclusive", "GeneratorStalled", "? inconclusive"},
		},
		"running": {report.Running, "", []string{"5 of 8 runs: no verdict yet", "without a verdict"}},
		"pending": {report.Pending, "", []string{"No run yet: 8 runs of 2 cells are planned", "it has not begun"}},
		"refused": {report.Failed, "", []string{"It ended before its first run", "Refused: cell connections=100"}},
		"aborted": {report.Failed, "", []string{"6 of 8 runs: no verdict yet", "Aborted: ended by spec.abort"}},
		"one cell": {
			report.Complete,
			report.Fail,
			[]string{
				"Something has regressed", "▼ regressed", "noRegression throughput",
				"connections=50 has regressed: throughput 20% lower than before.",
			},
		},
		"not recovered": {
			report.Complete,
			report.Pass,
			[]string{"&gt; 2 min", "≥", "multiplies the recovery by at least 46", "acknowledged writes were lost", "▼ worse"},
		},
	} {
		e := states(t)[name]
		d := reported(t, e)
		if d.State != want.state || d.Verdict != want.verdict {
			t.Errorf("%s: %s, %q", name, d.State, d.Verdict)
		}
		all := reporttest.Forms(t, d)
		text := strings.ReplaceAll(all["md"], wording.NBSP, " ")
		for _, part := range want.parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", name, part, text[:min(len(text), 3000)])
			}
		}
		if provisional := want.state != report.Complete; provisional && strings.ContainsAny(all["html"], "▲▼") {
			t.Errorf("%s: a word although there is no verdict", name)
		}
		if err := schema.Validate(reporttest.Decoded(t, all["json"])); err != nil {
			t.Errorf("%s: the JSON is not that of docs/report.schema.json: %v", name, err)
		}
		file := strings.ReplaceAll(name, " ", "-")
		reporttest.Golden(t, file+".md", all["md"])
		switch name {
		case "pass", "one cell", "not recovered":
			reporttest.Golden(t, file+".html", all["html"])
		case "fail":
			reporttest.Golden(t, file+".xml", all["xml"])
			reporttest.Golden(t, file+".csv", all["csv"])
			reporttest.Golden(t, file+".json", all["json"])
		}
	}
}

// runsOfFiles are the runs of a command's arguments.
func runsOfFiles(names ...string) []experiment.Cell {
	random := rand.New(rand.NewPCG(4, 4))
	var cells []experiment.Cell
	for k, name := range names {
		c := experiment.Cell{Name: name}
		for i := range 6 {
			c.Runs = append(c.Runs, experiment.Run{
				Source: fmt.Sprintf("runs/%s-%d.json", name, i), Start: begin.Add(time.Duration(10*i+k) * time.Minute),
				Values: map[string]experiment.Value{
					"throughput": {Value: 3000 * math.Exp(0.01*random.NormFloat64()) / float64(1+k)},
					"latencyP99": {Value: 0.002 * math.Exp(0.05*random.NormFloat64())},
				},
			})
		}
		cells = append(cells, c)
	}
	return cells
}

// Of the runs of a command each argument is a cell; without a requirement there is no verdict, and JUnit has no error.
func TestComparisonOfRuns(t *testing.T) {
	t.Parallel()
	cells := runsOfFiles("no", "always")
	table := experiment.Table(cells, experiment.Question{})
	for require, verdict := range map[v1alpha1.ComparisonRequirement]report.Verdict{"": "", "NotWorse": report.Fail} {
		d, err := New(study.Runs(cells, table, require))
		if err != nil {
			t.Fatal(err)
		}
		if d.Kind != report.Comparison || d.Verdict != verdict || d.Name != "no, always" ||
			!strings.Contains(strings.ReplaceAll(d.Finding.String(), wording.NBSP, " "), "always lowers the throughput by ") {
			t.Errorf("%s %q %s: %s", d.Kind, d.Verdict, d.Name, d.Finding)
		}
		all := reporttest.Forms(t, d)
		if failing := strings.Contains(all["xml"], "<failure") ||
			strings.Contains(all["xml"], "<error"); failing != (require != "") {
			t.Errorf("require %q:\n%s", require, all["xml"])
		}
		if require == "" {
			reporttest.Golden(t, "runs.md", all["md"])
		}
	}
}

// Of two experiments each cell has two rows: the earlier one is the baseline.
func TestTwoExperiments(t *testing.T) {
	t.Parallel()
	then, now := simulated(t, twoCells, steady, nil), simulated(t, twoCells, worse, nil)
	for i := range now.Record.Runs {
		now.Record.Runs[i].Start = now.Record.Runs[i].Start.Add(24 * time.Hour)
	}
	q := now.Plan.Question(&now.Object.Spec.Compare)
	against := experiment.CompareWith(now.Record, "", experiment.Earlier{Name: "redis-7", Record: then.Record}, q,
		now.Plan.BaselineOf)
	table := &comparisons.Comparisons{
		Version:     comparisons.Version,
		Baseline:    "redis-7",
		Comparisons: against.Rows,
		Notes:       against.Notes,
	}
	d, err := New(study.Two(then, now, "redis-7", "redis-8", table, v1alpha1.RequireNotWorse))
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(d.Finding.String(), wording.NBSP, " "); d.Verdict != report.Fail ||
		!strings.HasPrefix(text, "experiment redis-8 lowers the throughput by ") ||
		!strings.Contains(text, " in 1 of 2 cells") {
		t.Errorf("%q: %s", d.Verdict, text)
	}
	reporttest.Golden(t, "two.md", reporttest.Forms(t, d)["md"])
}

// 128 cells are a compact matrix without curves, and a page below 5 MB.
func TestManyCells(t *testing.T) {
	t.Parallel()
	e := many(t)
	d := reported(t, e)
	all := reporttest.Forms(t, d)
	if n := len(all["html"]); n > 5_000_000 || strings.Contains(all["html"], `class="smc"`) ||
		!strings.Contains(all["html"], `class="mx compact"`) {
		t.Errorf("%d bytes, curves %v", n, strings.Contains(all["html"], `class="smc"`))
	}
	if n := len(all["md"]); n > 65_536 {
		t.Errorf("%d bytes of Markdown do not fit into a comment", n)
	}
	t.Logf("HTML %d kB, Markdown %d kB, JSON %d kB", len(all["html"])/1000, len(all["md"])/1000, len(all["json"])/1000)
}

// many is an experiment of 128 cells.
func many(t testing.TB) *study.Experiment {
	spec := strings.Replace(fsyncSpec, "- {name: users, path: load.users, values: [1000, 2000, 3000]}",
		"- {name: users, path: load.users, values: [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000]}\n- {name: "+
			"connections, path: client.connections, values: [10, 20, 50, 100]}", 1)
	spec = strings.Replace(spec, "  - {name: always, config: {appendfsync: always}}\n",
		"  - {name: always, config: {appendfsync: always}}\n  - {name: off, config: {appendonly: \"no\"}}\n", 1)
	e := simulated(t, spec, func(cell map[string]string) map[string]float64 {
		f := fsync(map[string]string{"appendfsync": cell["appendfsync"], "users": "1000"})
		return f
	}, withDetails)
	if n := len(e.Plan.Variants); n != 128 {
		t.Fatalf("%d cells", n)
	}
	return e
}

// Text of servers, files and objects is no markup, in the page and its drawings.
func TestHostileText(t *testing.T) {
	t.Parallel()
	e := simulated(t, fsyncSpec, fsync, withDetails)
	e.Object.Status.Conditions[0].Message = hostileText
	for i := range e.Record.Runs {
		r := &e.Record.Runs[i]
		r.Server, r.Failed = hostileText, hostileText
		if i%9 == 0 {
			r.Inconclusive = hostileText
		}
		d := e.Details[r.LoadTest]
		d.Use.Bottleneck = hostileText
		d.Use.Pods = []study.PodCPU{{Name: hostileText, Max: 100}}
		for k := range d.Phases {
			d.Phases[k].Name, d.Phases[k].Source = hostileText, hostileText
		}
		e.Details[r.LoadTest+hostileText] = d
		r.LoadTest += hostileText
	}
	cells := runsOfFiles(hostileText, "b"+hostileText)
	of, err := New(study.Runs(cells, experiment.Table(cells, experiment.Question{}), ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*report.Document{reported(t, e), of} {
		all := reporttest.Forms(t, d)
		for _, markup := range []string{"<script>alert", "<img", `="'>`, "onerror=alert(2)>{{.}}<"} {
			if strings.Contains(all["html"], markup) {
				t.Errorf("the page contains %s", markup)
			}
		}
		if strings.Count(all["html"], "<script") != 1 {
			t.Errorf("%d scripts", strings.Count(all["html"], "<script"))
		}
		if strings.Contains(all["md"], "<img") || strings.Contains(all["md"], "<script") {
			t.Error("the Markdown contains HTML")
		}
	}
}

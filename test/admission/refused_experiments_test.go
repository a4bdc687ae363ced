//go:build integration

package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	killFault  = `{name: kill, spec: {action: {type: PodKill}}}`
	liveFault  = `{name: threads, spec: {action: {type: IOThreads, ioThreads: {count: 2, method: Live}}}}`
	twoFsyncs  = `{name: appendfsync, settings: [{name: never, config: {appendfsync: "no"}}, {name: always, config: {appendfsync: always}}]}`
	someUsers  = `{name: users, path: load.users, values: [1, 2]}`
	noSuch     = "supported values"
	notOneOf   = "each member must be the name of one of the parameter's values"
	otherFault = "what a fault is cannot be a parameter"
	decided    = "are decided by the experiment, and cannot be parameters"
	ownSwitch  = "leave abort, suspend and ttlSecondsAfterFinished out"
	ownRuns    = "leave abort, suspend, ttlSecondsAfterFinished and compareTo out"
)

var refusedExperiments = []refusal{
	{"no template", `{template: null}`, "spec.template", "Required value"},
	{"no matrix", `{matrix: null}`, "spec.matrix", "Required value"},
	{"nothing in matrix", `{matrix: []}`, "spec.matrix", "at least 1 items"},
	{"too many parameters", `{matrix: [` + parameters(7, 1) + `]}`, "spec.matrix", "must have at most 6 items"},
	{
		"two parameters of a name", `{matrix: [` + someUsers + `, {name: users, path: load.rate, values: [1]}]}`,
		"spec.matrix[1]", "Duplicate value",
	},
	{
		"no parameter's name", `{matrix: [{name: "a b", path: load.users, values: [1]}]}`, "spec.matrix[0].name",
		"should match",
	},
	{
		"a load test that is none", `{template: {spec: {workload: {keyspace: {keys: 0}}}}}`,
		"spec.template.spec.workload.keyspace.keys", "greater than or equal to 1",
	},
	{
		"an unknown field of the load test", `{template: {spec: {load: {user: 1}}}}`, "spec.template.spec.load.user",
		"unknown field",
	},
	{"an aborted load test", `{template: {spec: {abort: true}}}`, "spec.template.spec", ownSwitch},
	{"a suspended load test", `{template: {spec: {suspend: true}}}`, "spec.template.spec", ownSwitch},
	{"a load test that is deleted", `{template: {spec: {ttlSecondsAfterFinished: 1}}}`, "spec.template.spec", ownSwitch},

	{"neither values nor settings", `{matrix: [{name: a}]}`, "spec.matrix[0]", "set path and values"},
	{
		"values and settings", `{matrix: [{name: a, path: load.users, values: [1], settings: [{name: b}]}]}`,
		"spec.matrix[0]", "set path and values",
	},
	{"values of no field", `{matrix: [{name: a, values: [1]}]}`, "spec.matrix[0]", "values of which field?"},
	{
		"settings of a field", `{matrix: [{name: a, path: load.users, settings: [{name: b}]}]}`, "spec.matrix[0]",
		"values of which field?",
	},
	{"no values", `{matrix: [{name: a, path: load.users, values: []}]}`, "spec.matrix[0].values", "at least 1 items"},
	{
		"a broken value", `{matrix: [{name: a, path: load.users, values: [{a: b}]}]}`, "spec.matrix[0].values[0]",
		"unknown field",
	},
	{
		"fewer names than values", `{matrix: [{name: a, path: load.users, values: [1, 2], valueNames: [few]}]}`,
		"spec.matrix[0]", "valueNames must be as many as values",
	},
	{
		"two values of a name", `{matrix: [{name: a, path: load.users, values: [1, 2], valueNames: [few, few]}]}`,
		"spec.matrix[0].valueNames[1]", "Duplicate value",
	},
	{
		"a value's name with a comma", `{matrix: [{name: a, path: load.users, values: [1], valueNames: ["a,b"]}]}`,
		"spec.matrix[0].valueNames[0]", "should match",
	},
	{
		"two settings of a name", `{matrix: [{name: a, settings: [{name: b}, {name: b}]}]}`, "spec.matrix[0].settings[1]",
		"Duplicate value",
	},
	{
		"select without settings", `{matrix: [{name: users, path: load.users, values: [1], select: {mode: All}}]}`,
		"spec.matrix[0]", "select and allow belong to settings",
	},
	{
		"allow without settings", `{matrix: [{name: users, path: load.users, values: [1], allow: [Eviction]}]}`,
		"spec.matrix[0]", "select and allow belong to settings",
	},
	{
		"a setting's name in upper case", `{matrix: [{name: a, settings: [{name: b, config: {Appendfsync: always}}]}]}`,
		"spec.matrix[0].settings[0].config", "lower-case letters",
	},
	{
		"no I/O threads", `{matrix: [{name: a, settings: [{name: b, ioThreads: {}}]}]}`,
		"spec.matrix[0].settings[0].ioThreads.count", "Required value",
	},
	{
		"resources without any", `{matrix: [{name: a, settings: [{name: b, resources: {}}]}]}`,
		"spec.matrix[0].settings[0].resources", "set cpu or memory",
	},
	{
		"a template without a patch", `{matrix: [{name: a, settings: [{name: b, podTemplate: {}}]}]}`,
		"spec.matrix[0].settings[0].podTemplate.patch", "Required value",
	},
	{
		"no replicas more or less", `{matrix: [{name: a, settings: [{name: b, replicaScale: {by: 0}}]}]}`,
		"spec.matrix[0].settings[0].replicaScale.by", "0 would change nothing",
	},
	{
		"faults and no faults", `{faults: [` + killFault +
			`], matrix: [{name: a, settings: [{name: b, faults: [kill], noFaults: true}]}]}`, "spec.matrix[0].settings[0]",
		"set faults or noFaults",
	},
	{
		"a setting with a fault that there is not",
		`{faults: [` + killFault + `], matrix: [{name: a, settings: [{name: b, faults: [kil]}]}]}`, "spec.matrix",
		"a setting's faults must be names of spec.faults",
	},
	{
		"a setting with a fault without faults", `{matrix: [{name: a, settings: [{name: b, faults: [kill]}]}]}`,
		"spec.matrix", "a setting's faults must be names of spec.faults",
	},

	{"a path with a slash", `{matrix: [{name: a, path: load/users, values: [1]}]}`, "spec.matrix[0].path", "should match"},
	{
		"a path that ends in a dot", `{matrix: [{name: a, path: load., values: [1]}]}`, "spec.matrix[0].path",
		"should match",
	},
	{
		"two parameters of a path", `{matrix: [` + someUsers + `, {name: more, path: load.users, values: [3]}]}`,
		"spec.matrix", "two parameters set the same field",
	},
	{
		"a path within another", `{matrix: [` + someUsers + `, {name: more, path: load, values: ["{}"]}]}`, "spec.matrix",
		"one sets a field within that of another",
	},
	{
		"a path to no fault", `{matrix: [{name: a, path: faults.kill.duration, values: [1s]}]}`, "spec.matrix",
		"the name of one of spec.faults",
	},
	{
		"a path to another fault",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kil.duration, values: [1s]}]}`, "spec.matrix",
		"the name of one of spec.faults",
	},
	{
		"a path to faults", `{faults: [` + killFault + `], matrix: [{name: a, path: faults, values: ["[]"]}]}`, "spec.matrix",
		"the name of one of spec.faults",
	},
	{
		"a path to a whole fault", `{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill, values: ["{}"]}]}`,
		"spec.matrix[0].path", otherFault,
	},
	{
		"a path to what a fault does",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.action, values: ["{}"]}]}`, "spec.matrix[0].path",
		otherFault,
	},
	{
		"a path to a fault's type",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.action.type, values: [Hang]}]}`,
		"spec.matrix[0].path", otherFault,
	},
	{
		"a path to a fault's type, in capitals",
		`{faults: [` + killFault + `], matrix: [{name: a, path: Faults.kill.ACTION.Type, values: [Hang]}]}`,
		"spec.matrix[0].path", otherFault,
	},
	{
		"a path to a fault's engine",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.engine, values: [ChaosMesh]}]}`,
		"spec.matrix[0].path", otherFault,
	},
	{
		"a path to a fault's load test",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.loadTestRef.name, values: [b]}]}`,
		"spec.matrix[0].path", decided,
	},
	{
		"a path to a fault's dry run",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.dryRun, values: ["true"]}]}`,
		"spec.matrix[0].path", decided,
	},
	{
		"a path to a fault's switch",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.suspend, values: ["true"]}]}`,
		"spec.matrix[0].path", decided,
	},
	{"a path to a switch", `{matrix: [{name: a, path: abort, values: ["true"]}]}`, "spec.matrix[0].path", decided},

	{
		"too many cells", `{repeat: 1, matrix: [` + parameters(3, 6) + `]}`, "spec.matrix",
		"the combinations of all values are more than 128 cells",
	},
	{
		"ten thousand cells", `{repeat: 1, matrix: [` + parameters(4, 10) + `]}`, "spec.matrix",
		"the combinations of all values are more than 128 cells",
	},
	{"too many runs", `{repeat: 50, matrix: [` + parameters(2, 7) + `]}`, "spec.repeat", "more than 2000 runs"},
	{"no runs", `{repeat: 0}`, "spec.repeat", "greater than or equal to 1"},
	{"unknown order", `{order: Backwards}`, "spec.order", noSuch},

	{
		"a baseline of no parameter", `{baseline: {user: "1"}}`, "spec.baseline",
		"each key must be the name of a parameter of matrix",
	},
	{"a baseline that is no number", `{baseline: {users: "3"}}`, "spec.baseline", notOneOf},
	{
		"a baseline that is no text",
		`{matrix: [{name: a, path: workload.keyspace.prefix, values: [b, "1"]}], baseline: {a: c}}`, "spec.baseline",
		notOneOf,
	},
	{
		"a baseline by value instead of its name",
		`{matrix: [{name: a, path: load.users, values: [1, 2], valueNames: [few, many]}], baseline: {a: "1"}}`,
		"spec.baseline", notOneOf,
	},
	{
		"a baseline that is no setting", `{matrix: [` + twoFsyncs + `], baseline: {appendfsync: "no"}}`, "spec.baseline",
		notOneOf,
	},

	{
		"a fault's own load test", `{faults: [{name: kill, spec: {loadTestRef: {name: a}, action: {type: PodKill}}}]}`,
		"spec.faults[0].spec", "leave loadTestRef out",
	},
	{
		"a fault's dry run", `{faults: [{name: kill, spec: {dryRun: true, action: {type: PodKill}}}]}`, "spec.faults[0].spec",
		"leave dryRun out",
	},
	{
		"a fault's own pods", `{faults: [{name: kill, spec: {probePods: {image: a}, action: {type: PodKill}}}]}`,
		"spec.faults[0].spec", "leave probePods out",
	},
	{
		"a setting among faults",
		`{faults: [{name: kill, spec: {setting: true, action: {type: Config, config: {parameters: {hz: "10"}}}}}]}`,
		"spec.faults[0].spec", "settings of the servers are values of matrix",
	},
	{
		"a fault beside itself", `{faults: [{name: kill, spec: {beside: [kill], action: {type: PodKill}}}]}`,
		"spec.faults[0].spec.beside", "cannot act beside itself",
	},
	{
		"a fault beside a stranger", `{faults: [{name: kill, spec: {beside: [loss], action: {type: PodKill}}}]}`,
		"spec.faults", "a fault's beside must be names of spec.faults",
	},
	{
		"a suspended fault", `{faults: [{name: kill, spec: {suspend: true, action: {type: PodKill}}}]}`,
		"spec.faults[0].spec", ownSwitch,
	},
	{
		"a fault that is none", `{faults: [{name: kill, spec: {action: {type: PodKill, hang: {}}}}]}`,
		"spec.faults[0].spec.action", "hang belongs to type Hang",
	},
	{"two faults of a name", `{faults: [` + killFault + `, ` + killFault + `]}`, "spec.faults[1]", "Duplicate value"},
	{
		"a fault's name in capitals", `{faults: [{name: Kill, spec: {action: {type: PodKill}}}]}`, "spec.faults[0].name",
		"should match",
	},
	{
		"a delay that is too long", `{faults: [{name: kill, randomDelay: 2h, spec: {action: {type: PodKill}}}]}`,
		"spec.faults[0].randomDelay", "must be between 0s and 1h",
	},

	{"an unknown figure", `{compare: {figures: [latency]}}`, "spec.compare.figures[0]", noSuch},
	{
		"too many figures", `{compare: {figures: [throughput, latencyP50, latencyP99, latencyP999, errorRate]}}`,
		"spec.compare.figures", "must have at most 4 items",
	},
	{
		"a figure of faults without any", `{compare: {figures: [recoveryTime]}}`, "spec.compare.figures",
		"are figures of faults",
	},
	{
		"a margin of no figure", `{compare: {margins: {latency: "10%"}}}`, "spec.compare.margins",
		"must be names of figures that have a margin",
	},
	{
		"a margin of lost writes", `{compare: {margins: {lostWrites: "10%"}}}`, "spec.compare.margins",
		"must be names of figures that have a margin",
	},
	{"an unknown requirement", `{compare: {require: Better}}`, "spec.compare.require", noSuch},
	{"too many baselines", `{compare: {baselineRepeats: 5}}`, "spec.compare.baselineRepeats", "less than or equal to 4"},

	{"an unknown field of the experiment", `{schedule: "@daily"}`, "spec.schedule", "unknown field"},
	{"confirmed regressions", `{compareTo: {run: before, confirm: true}}`, "spec.compareTo.confirm", "unknown field"},
}

// refusedSchedules are those of which not the experiment is refused.
var refusedSchedules = []refusal{
	{"no template", `{template: null}`, "spec.template", "Required value"},
	{"a template without an experiment", `{template: {spec: null}}`, "spec.template.spec", "Required value"},
	{"an aborted experiment", inSchedule(`{abort: true}`), "spec.template.spec", ownRuns},
	{"a suspended experiment", inSchedule(`{suspend: true}`), "spec.template.spec", ownRuns},
	{"an experiment that is deleted", inSchedule(`{ttlSecondsAfterFinished: 0}`), "spec.template.spec", ownRuns},
	{"an experiment's own earlier run", inSchedule(`{compareTo: {run: before}}`), "spec.template.spec", ownRuns},
	{
		"no regression against nothing", inSchedule(`{objectives: {noRegression: true}}`), "spec.compareTo",
		"noRegression needs compareTo",
	},
	{"no schedule", `{schedule: null}`, "spec.schedule", "Required value"},
	{"an empty schedule", `{schedule: ""}`, "spec.schedule", "should be at least 1 chars long"},
	{"a schedule with a time zone", `{schedule: "TZ=UTC 0 3 * * *"}`, "spec.schedule", "set timeZone instead"},
	{"a schedule of four fields", `{schedule: "0 3 * *"}`, "spec.schedule", "must be five fields"},
	{"a schedule of six fields", `{schedule: "0 0 3 * * *"}`, "spec.schedule", "must be five fields"},
	{"an unknown schedule", `{schedule: "@nightly"}`, "spec.schedule", "must be five fields"},
	{
		"a deadline that is too short", `{startingDeadlineSeconds: 9}`, "spec.startingDeadlineSeconds",
		"greater than or equal to 10",
	},
	{
		"too many runs kept", `{successfulRunsHistoryLimit: 101}`, "spec.successfulRunsHistoryLimit",
		"less than or equal to 100",
	},
	{"runs at the same time", `{concurrencyPolicy: Allow}`, "spec.concurrencyPolicy", noSuch},
	{"a comparison with nothing", `{compareTo: {confirm: true}}`, "spec.compareTo.run", "Required value"},
	{"notifications to nobody", `{notify: {template: a}}`, "spec.notify.urlSecretRef", "Required value"},
	{"a Secret without a key", `{notify: {urlSecretRef: {name: a}}}`, "spec.notify.urlSecretRef.key", "Required value"},
	{
		"an empty template", `{notify: {urlSecretRef: {name: a, key: url}, template: ""}}`, "spec.notify.template",
		"should be at least 1 chars long",
	},
	{
		"a long template", `{notify: {urlSecretRef: {name: a, key: url}, template: "` + strings.Repeat("a", 8193) + `"}}`,
		"spec.notify.template", "may not be more than 8192",
	},
	// Suspend it, or delete it, or abort its run.
	{"an abort", `{abort: true}`, "spec.abort", "unknown field"},
	{"a time to live", `{ttlSecondsAfterFinished: 5}`, "spec.ttlSecondsAfterFinished", "unknown field"},
	{"an experiment outside its template", `{repeat: 5}`, "spec.repeat", "unknown field"},
}

// inTemplates are refusals of experiments, in schedules.
func inTemplates(experiments []refusal) []refusal {
	var all []refusal
	for _, r := range experiments {
		all = append(all, refusal{
			"in a schedule: " + r.name, inSchedule(r.change),
			strings.Replace(r.field, "spec", "spec.template.spec", 1), r.why,
		})
	}
	return all
}

// parameters are so many parameters of a matrix with so many values each.
func parameters(n, values int) string {
	var all []string
	for i := range n {
		of := make([]string, values)
		for v := range of {
			of[v] = fmt.Sprint(v)
		}
		all = append(all, fmt.Sprintf("{name: p%d, path: workload.p%d, values: [%s]}", i, i, strings.Join(of, ", ")))
	}
	return strings.Join(all, ", ")
}

// The largest experiment that the schema permits is within the API server's budget for rules.
func TestLargestExperiment(t *testing.T) {
	long := strings.Repeat("x", 57)
	var faults, values []string
	for i := range 4 {
		faults = append(faults,
			fmt.Sprintf(`{name: "fault-%06d", spec: {target: %s, action: {type: IOThreads, ioThreads: {count: 2}}}}`, i,
				targetWithSecrets))
	}
	for i := range 32 {
		values = append(values, fmt.Sprintf("%s-%d", long, i))
	}
	matrix := []string{
		fmt.Sprintf(`{name: values, path: workload.keyspace.prefix, values: [%s]}`, strings.Join(values, ", ")),
	}
	for i := range 4 {
		matrix = append(matrix, fmt.Sprintf(`{name: "p%d", path: "faults.fault-%06d.%s", values: [a]}`, i, i,
			strings.Repeat("a.", 100)+"b"))
	}
	matrix = append(matrix,
		`{name: last, settings: [{name: a, faults: [fault-000000, fault-000001, fault-000002, fault-000003]}, {name: b, ioThreads: {count: 2}}]}`)
	change := fmt.Sprintf(`{repeat: 1, faults: [%s], matrix: [%s], baseline: {values: %s, last: b}}`,
		strings.Join(faults, ", "), strings.Join(matrix, ", "), values[31])
	for kind, change := range map[string]string{"RedisExperiment": change, "RedisExperimentSchedule": inSchedule(change)} {
		if err := strict.Create(t.Context(), object(t, kind, name(t), change), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// An experiment that runs once and one of a schedule say in another field what they are compared with.
func TestNoRegressionNeedsAnEarlierRun(t *testing.T) {
	const objective = `{objectives: {noRegression: true}}`
	err := strict.Create(t.Context(), object(t, "RedisExperiment", name(t), objective), client.DryRunAll)
	expectRefusal(t, err, "spec.objectives", "noRegression needs compareTo")
	err = strict.Create(t.Context(), object(t, "RedisExperiment", name(t), `{compareTo: {run: last}}`), client.DryRunAll)
	expectRefusal(t, err, "spec.compareTo.run", "an experiment has no last run")
	err = strict.Create(t.Context(), object(t, "RedisExperimentSchedule", name(t), inSchedule(objective)),
		client.DryRunAll)
	expectRefusal(t, err, "spec.compareTo", "noRegression needs compareTo")
}

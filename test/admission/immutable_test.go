//go:build integration

package admission_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// A change to each field of a spec. TestEveryFieldIsFrozen demands one for each field that the CRD has.
var changes = map[string]struct {
	crd    string
	fields map[string]frozenCase
}{
	"RedisLoadTest": {"redquake.dev_redisloadtests.yaml", map[string]frozenCase{
		"target":     {`{}`, `{target: {service: {name: another}}}`},
		"client":     {`{}`, `{client: {pipeline: 2}}`},
		"load":       {`{}`, `{load: {users: 2}}`},
		"workload":   {`{}`, `{workload: {keyspace: {prefix: "other:"}}}`},
		"pods":       {`{}`, `{pods: {lost: Continue}}`},
		"probe":      {`{}`, `{probe: {rate: 1}}`},
		"observe":    {`{}`, `{observe: {interval: 1s}}`},
		"verify":     {`{}`, `{verify: {acknowledgedWrites: true}}`},
		"objectives": {`{}`, `{objectives: {maxErrorRate: "1%"}}`},
	}},
	"RedisFault": {"redquake.dev_redisfaults.yaml", map[string]frozenCase{
		"loadTestRef":      {`{}`, `{loadTestRef: {name: another}}`},
		"target":           {`{}`, `{target: {service: {name: redis}}}`},
		"probePods":        {`{loadTestRef: null, target: {service: {name: redis}}}`, `{probePods: {image: other}}`},
		"select":           {`{}`, `{select: {mode: All}}`},
		"trigger":          {`{}`, `{trigger: {steadyFor: 5s}}`},
		"duration":         {`{action: {type: ClientPause}}`, `{duration: 5s}`},
		"deadline":         {`{}`, `{deadline: 5m}`},
		"recoveryDeadline": {`{}`, `{recoveryDeadline: 1m}`},
		"objectives":       {`{}`, `{objectives: {maxOutage: 5s}}`},
		"stopIf":           {`{}`, `{stopIf: {outage: 5s}}`},
		"beside":           {`{}`, `{beside: [other]}`},
		"allow":            {`{}`, `{allow: [AllCopies]}`},
		"dryRun":           {`{}`, `{dryRun: true}`},
		"setting":          {`{action: {type: Config, config: {parameters: {hz: "10"}}}}`, `{setting: true}`},
		"engine":           {`{}`, `{engine: ChaosMesh}`},
		"action":           {`{}`, `{action: {type: ProcessCrash}}`},
	}},
	"RedisExperiment": {"redquake.dev_redisexperiments.yaml", map[string]frozenCase{
		"template":      {`{}`, `{template: {spec: {probe: {rate: 1}}}}`},
		"faults":        {`{}`, `{faults: [` + killFault + `]}`},
		"matrix":        {`{}`, `{matrix: [{name: users, path: load.users, values: [1, 3]}]}`},
		"repeat":        {`{}`, `{repeat: 7}`},
		"order":         {`{}`, `{order: Sequential}`},
		"baseline":      {`{}`, `{baseline: {users: "2"}}`},
		"compare":       {`{}`, `{compare: {require: Same}}`},
		"compareTo":     {`{}`, `{compareTo: {run: before}}`},
		"objectives":    {`{compareTo: {run: before}}`, `{objectives: {noRegression: true}}`},
		"stopOnFailure": {`{}`, `{stopOnFailure: true}`},
	}},
}

// actionChanges is a change to each member of spec.action. They are frozen by one comparison.
var actionChanges = map[string]frozenCase{
	"type":              {`{}`, `{action: {type: ProcessCrash}}`},
	"podKill":           {`{}`, `{action: {podKill: {gracePeriodSeconds: 0}}}`},
	"outOfMemory":       {`{action: {type: OutOfMemory}}`, `{action: {outOfMemory: {timeout: 2m}}}`},
	"processCrash":      {`{action: {type: ProcessCrash}}`, `{action: {processCrash: {method: Segfault}}}`},
	"failover":          {`{action: {type: Failover, failover: {mode: Plain}}}`, `{action: {failover: {mode: Force}}}`},
	"external":          {`{action: {type: External}}`, `{action: {external: {waitFor: 5m}}}`},
	"volumeAttachDelay": {`{action: {type: VolumeAttachDelay}}`, `{action: {volumeAttachDelay: {keepAway: None}}}`},
	"podTemplate": {
		`{action: {type: PodTemplate, podTemplate: {patch: {spec: {priorityClassName: low}}}}}`,
		`{action: {podTemplate: {patch: {spec: {priorityClassName: high}}}}}`,
	},
	"ioThreads": {`{action: {type: IOThreads, ioThreads: {count: 2}}}`, `{action: {ioThreads: {count: 3}}}`},
	"config": {
		`{action: {type: Config, config: {parameters: {hz: "10"}}}}`,
		`{action: {config: {parameters: {hz: "20"}}}}`,
	},
	"replicaScale":   {`{action: {type: ReplicaScale, replicaScale: {by: 1}}}`, `{action: {replicaScale: {by: -1}}}`},
	"resources":      {`{action: {type: Resources, resources: {cpu: 100m}}}`, `{action: {resources: {cpu: 200m}}}`},
	"hang":           {`{action: {type: Hang}}`, `{action: {hang: {method: Script}}}`},
	"clientPause":    {`{action: {type: ClientPause}}`, `{action: {clientPause: {mode: Write}}}`},
	"clientKill":     {`{action: {type: ClientKill}}`, `{action: {clientKill: {type: pubsub}}}`},
	"backgroundSave": {`{action: {type: BackgroundSave}}`, `{action: {backgroundSave: {kind: AppendOnlyRewrite}}}`},
	"nodeLoss":       {`{action: {type: NodeLoss, nodeLoss: {node: a}}}`, `{action: {nodeLoss: {node: b}}}`},
	"zoneLoss":       {`{action: {type: ZoneLoss, zoneLoss: {zone: a}}}`, `{action: {zoneLoss: {zone: b}}}`},
	"drain":          {`{action: {type: Drain, drain: {node: a}}}`, `{action: {drain: {node: b}}}`},
	"operatorOutage": {
		`{action: {type: OperatorOutage, operatorOutage: {deployment: a, namespace: b}}}`,
		`{action: {operatorOutage: {namespace: c}}}`,
	},
	"diskFull": {`{action: {type: DiskFull}}`, `{action: {diskFull: {leave: 16Mi}}}`},
	"networkDelay": {
		`{engine: ChaosMesh, action: {type: NetworkDelay, networkDelay: {latency: 10ms}}}`,
		`{action: {networkDelay: {latency: 20ms}}}`,
	},
	"networkLoss": {
		`{action: {type: NetworkLoss, networkLoss: {loss: "10%", peers: [Operator], operator: {deployment: a, namespace: b}}}}`,
		`{action: {networkLoss: {loss: "20%"}}}`,
	},
	"networkPartition": {
		`{action: {type: NetworkPartition, networkPartition: {peers: [Operator], operator: {deployment: a, namespace: b}}}}`,
		`{action: {networkPartition: {operator: {deployment: c}}}}`,
	},
	"diskDelay": {
		`{engine: ChaosMesh, action: {type: DiskDelay, diskDelay: {delay: 10ms}}}`,
		`{action: {diskDelay: {delay: 20ms}}}`,
	},
	"cpuStress": {
		`{engine: ChaosMesh, action: {type: CPUStress, cpuStress: {workers: 1}}}`,
		`{action: {cpuStress: {workers: 2}}}`,
	},
	"clockSkew": {
		`{engine: ChaosMesh, action: {type: ClockSkew, clockSkew: {offset: 1m}}}`,
		`{action: {clockSkew: {offset: 2m}}}`,
	},
}

// frozenCase is an object as it was made, and a change of one field that would be fine before its start.
type frozenCase struct{ made, change string }

// Fields that can change: the switches, and what concerns the object after its run.
var open = map[string][]string{
	"RedisLoadTest":   {"abort", "suspend", "ttlSecondsAfterFinished"},
	"RedisFault":      {"abort", "suspend", "ttlSecondsAfterFinished"},
	"RedisExperiment": {"abort", "suspend", "ttlSecondsAfterFinished", "loadTestsHistoryLimit"},
}

const frozen = "the spec cannot change once"

func TestEveryFieldIsFrozen(t *testing.T) {
	for kind, c := range changes {
		t.Run(kind, func(t *testing.T) {
			for _, field := range fieldsOf(t, c.crd) {
				if slices.Contains(open[kind], field) {
					continue
				}
				frozenField, ok := c.fields[field]
				if !ok {
					t.Errorf("no case changes spec.%s", field)
					continue
				}
				t.Run(field, func(t *testing.T) { frozenField.check(t, kind) })
			}
		})
	}
	t.Run("action", func(t *testing.T) {
		for _, member := range fieldsOf(t, changes["RedisFault"].crd, "action") {
			frozenMember, ok := actionChanges[member]
			if !ok {
				t.Errorf("no case changes spec.action.%s", member)
				continue
			}
			t.Run(member, func(t *testing.T) { frozenMember.check(t, "RedisFault") })
		}
	})
}

func (c frozenCase) check(t *testing.T, kind string) {
	o := created(t, object(t, kind, "freeze-"+name(t), c.made))
	// Before the start it may change; the change is not kept, so that the next one is a change, too.
	dry := client.NewDryRunClient(strict)
	if err := dry.Patch(t.Context(), o.DeepCopy(),
		client.RawPatch("application/merge-patch+json", wrap(t, "spec", c.change))); err != nil {
		t.Errorf("before the start: %v", err)
	}
	if err := patchStatus(t, o, `{startTime: "2026-01-01T00:00:00.000000Z"}`); err != nil {
		t.Fatal(err)
	}
	expectRefusal(t, patchSpec(t, o, c.change), kind, frozen)
}

// scheduleChanges is a change to each field of a schedule: none is frozen, as a schedule does not end. A change counts
// from the next run on.
var scheduleChanges = map[string]string{
	"template":                   inSchedule(`{repeat: 7, matrix: [` + twoFsyncs + `]}`),
	"schedule":                   `{schedule: "0 4 * * *"}`,
	"timeZone":                   `{timeZone: Europe/Berlin}`,
	"concurrencyPolicy":          `{concurrencyPolicy: Replace}`,
	"startingDeadlineSeconds":    `{startingDeadlineSeconds: 60}`,
	"successfulRunsHistoryLimit": `{successfulRunsHistoryLimit: 0}`,
	"failedRunsHistoryLimit":     `{failedRunsHistoryLimit: 0}`,
	"compareTo":                  `{compareTo: {run: last}}`,
	"notify":                     `{notify: {urlSecretRef: {name: chat, key: url}}}`,
	"suspend":                    `{suspend: true}`,
}

func TestNoFieldOfAScheduleIsFrozen(t *testing.T) {
	o := created(t, object(t, "RedisExperimentSchedule", name(t), `{}`))
	if err := patchStatus(t, o,
		`{observedGeneration: 1, lastScheduleTime: "2026-01-01T00:00:00Z", active: nightly-1}`); err != nil {
		t.Fatal(err)
	}
	for _, field := range fieldsOf(t, "redquake.dev_redisexperimentschedules.yaml") {
		change, ok := scheduleChanges[field]
		if !ok {
			t.Errorf("no case changes spec.%s", field)
			continue
		}
		if err := patchSpec(t, o, change); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := patchSpec(t, o, `{suspend: false}`); err != nil {
		t.Errorf("resume: %v", err)
	}
}

// Removing a field is a change, too.
func TestRemovalIsFrozen(t *testing.T) {
	tests := []struct{ name, kind, made, change string }{
		{"objectives", "RedisLoadTest", `{objectives: {maxErrorRate: "1%"}}`, `{objectives: null}`},
		{"verify", "RedisLoadTest", `{verify: {acknowledgedWrites: true}}`, `{verify: null}`},
		{"member", "RedisFault", `{action: {podKill: {gracePeriodSeconds: 0}}}`, `{action: {podKill: null}}`},
		{"load test", "RedisFault", `{target: {service: {name: redis}}}`, `{loadTestRef: null}`},
		{"target", "RedisFault", `{target: {service: {name: redis}}}`, `{target: null}`},
		{"faults", "RedisExperiment", `{faults: [` + killFault + `]}`, `{faults: null}`},
		{"baseline", "RedisExperiment", `{baseline: {users: "2"}}`, `{baseline: null}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := created(t, object(t, test.kind, "remove-"+name(t), test.made))
			if err := patchStatus(t, o, `{startTime: "2026-01-01T00:00:00.000000Z"}`); err != nil {
				t.Fatal(err)
			}
			expectRefusal(t, patchSpec(t, o, test.change), test.kind, frozen)
		})
	}
}

// After the start the switches, metadata and the status still change; an abort is not taken back.
func TestWhatStaysOpen(t *testing.T) {
	for kind := range changes {
		t.Run(kind, func(t *testing.T) {
			o := created(t, object(t, kind, "open-"+name(t), `{}`))
			if err := patchStatus(t, o, `{startTime: "2026-01-01T00:00:00.000000Z", observedGeneration: 1}`); err != nil {
				t.Fatal(err)
			}
			for _, change := range []string{
				`{suspend: true}`, `{suspend: false}`, `{ttlSecondsAfterFinished: 60}`,
				`{ttlSecondsAfterFinished: null}`, `{abort: true}`,
			} {
				if err := patchSpec(t, o, change); err != nil {
					t.Errorf("%s: %v", change, err)
				}
			}
			expectRefusal(t, patchSpec(t, o, `{abort: false}`), "spec.abort", "an abort cannot be taken back")

			label := client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"a":"b"},"finalizers":["redquake.dev/test"]}}`))
			if err := strict.Patch(t.Context(), o.DeepCopy(), label); err != nil {
				t.Errorf("metadata: %v", err)
			}
			for _, status := range []string{
				`{completionTime: "2026-01-01T00:01:00.000000Z", conditions: [{type: Complete, status: "True", reason: Succeeded,
				  message: done, lastTransitionTime: "2026-01-01T00:01:00Z"}]}`,
				`{startTime: null, completionTime: null}`, // a suspended test forgets its start
			} {
				if err := patchStatus(t, o, status); err != nil {
					t.Errorf("status %s: %v", status, err)
				}
			}
			free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if err := strict.Patch(t.Context(), o.DeepCopy(), free); err != nil {
				t.Errorf("finalizer: %v", err)
			}
		})
	}
}

// fieldsOf gives the names of the fields of a CRD's spec, or of a member of it.
func fieldsOf(t *testing.T, file string, path ...string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(schemaOf(t, file, path...).Properties))
}

// schemaOf gives the schema of a CRD's spec, or of a member of it.
func schemaOf(t *testing.T, file string, path ...string) apiext.JSONSchemaProps {
	t.Helper()
	source, err := os.ReadFile("../../config/crd/bases/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiext.CustomResourceDefinition
	if err := yaml.Unmarshal(source, &crd); err != nil {
		t.Fatal(err)
	}
	at := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for _, member := range path {
		at = at.Properties[member]
	}
	return at
}

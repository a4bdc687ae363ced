//go:build integration

package admission_test

var refusedFaults = []refusal{
	{"no type", `{action: {type: null}}`, "spec.action.type", "Required value"},
	{"unknown type", `{action: {type: MeteorStrike}}`, "spec.action.type", `supported values: "PodKill", "ProcessCrash"`},
	{
		"two members", `{action: {podKill: {}, processCrash: {}}}`, "spec.action",
		"processCrash belongs to type ProcessCrash",
	},
	{
		"member of another type", `{action: {processCrash: {method: Shutdown}}}`, "spec.action",
		"set the member that type names, or none",
	},
	{"no action", `{action: null}`, "spec.action", "Required value"},
	{"no member where it is required", `{action: {type: Config}}`, "spec.action", "config is required with type Config"},
	{
		"a template without a patch", `{action: {type: PodTemplate, podTemplate: {}}}`, "spec.action.podTemplate.patch",
		"Required value",
	},
	{
		"an empty patch", `{action: {type: PodTemplate, podTemplate: {patch: {}}}}`, "spec.action.podTemplate.patch",
		"should have at least 1 properties",
	},
	{
		"a patch of nothing", `{action: {type: PodTemplate, podTemplate: {patch: {spec: {}}}}}`,
		"spec.action.podTemplate.patch.spec", "should have at least 1 properties",
	},
	{
		"a patch of a text", `{action: {type: PodTemplate, podTemplate: {patch: {spec: high}}}}`,
		"spec.action.podTemplate.patch.spec", "must be of type object",
	},
	{
		"a patch of the StatefulSet",
		`{action: {type: PodTemplate, podTemplate: {patch: {spec: {priorityClassName: high}, replicas: 3}}}}`,
		"spec.action.podTemplate.patch.replicas", "unknown field",
	},
	{
		"a template with another type", `{action: {podTemplate: {patch: {spec: {priorityClassName: high}}}}}`, "spec.action",
		"podTemplate is required with type PodTemplate, and forbidden otherwise",
	},
	{
		"a needed member with another type", `{action: {nodeLoss: {node: a}}}`, "spec.action",
		"nodeLoss is required with type NodeLoss, and forbidden otherwise",
	},
	{
		"a node that is lost in another way", `{action: {type: NodeLoss, nodeLoss: {node: a, method: Fire}}}`,
		"spec.action.nodeLoss.method", `supported values: "Taint", "Power"`,
	},
	{
		"a power hook of one's own", `{action: {type: NodeLoss, nodeLoss: {node: a, method: Power, url: "http://10.0.0.1/"}}}`,
		"spec.action.nodeLoss.url", "unknown field",
	},
	{
		"Chaos Mesh with a type that it does not support", `{engine: ChaosMesh, action: {type: Hang}}`, "spec",
		"engine ChaosMesh injects PodKill",
	},
	{"what only Chaos Mesh can do", `{action: {type: CPUStress}}`, "spec", "the last three need it"},
	{
		"a delay of what comes in", `{action: {type: NetworkDelay, networkDelay: {latency: 5ms, direction: In, peers: [Clients]}}}`,
		"spec.action.networkDelay.direction", "engine Native delays what the server sends",
	},
	{"memory that lasts", `{duration: 5s, action: {type: OutOfMemory}}`, "spec.duration", "does not last"},
	{
		"memory of another type", `{action: {type: PodKill, outOfMemory: {}}}`, "spec.action",
		"outOfMemory belongs to type OutOfMemory",
	},
	{
		"memory for long", `{action: {type: OutOfMemory, outOfMemory: {timeout: 11m}}}`, "spec.action.outOfMemory.timeout",
		"must be between 5s and 10m",
	},
	{
		"a full disk of another type", `{action: {type: PodKill, diskFull: {}}}`, "spec.action",
		"diskFull belongs to type DiskFull",
	},
	{"less than nothing left", `{action: {type: DiskFull, diskFull: {leave: "-1"}}}`, "spec.action.diskFull.leave", "must be a size"},
	{"a full disk for long", `{duration: 61m, action: {type: DiskFull}}`, "spec.duration", "must be at most 1h"},
	{"a crash that lasts", `{duration: 5s, action: {type: ProcessCrash}}`, "spec.duration", "does not last"},
	{"a failover that lasts", `{duration: 5s, action: {type: Failover}}`, "spec.duration", "does not last"},
	{"closed connections that last", `{duration: 5s, action: {type: ClientKill}}`, "spec.duration", "does not last"},
	{
		"an external fault that lasts", `{duration: 5s, action: {type: External, podKill: null}}`, "spec.duration",
		"does not last",
	},
	{
		"an external fault that selects", `{select: {role: Primary}, action: {type: External}}`, "spec.select",
		"leave select out",
	},
	{
		"an external fault of some pods", `{select: {names: [redis-0]}, action: {type: External}}`, "spec.select",
		"leave select out",
	},
	{
		"an external fault with stop conditions", `{stopIf: {outage: 5s}, action: {type: External}}`, "spec.stopIf",
		"leave stopIf out",
	},
	{
		"an external fault by Chaos Mesh", `{engine: ChaosMesh, action: {type: External}}`, "spec",
		"engine ChaosMesh injects PodKill",
	},
	{"a drain of no node that lasts", `{duration: 5s, action: {type: Drain}}`, "spec.duration", "without drain.node nothing of a Drain lasts"},
	{
		"a drain that gives up at once", `{action: {type: Drain, drain: {timeout: 29s}}}`, "spec.action.drain.timeout",
		"must be between 30s and 1h",
	},
	{
		"no operator", `{action: {type: OperatorOutage}}`, "spec.action",
		"operatorOutage is required with type OperatorOutage",
	},
	{"no zone", `{action: {type: ZoneLoss}}`, "spec.action", "zoneLoss is required with type ZoneLoss"},
	{
		"two zones", `{select: {zone: b}, action: {type: ZoneLoss, zoneLoss: {zone: a}}}`, "spec.select.zone",
		"the zone is that of action.zoneLoss",
	},
	{"drain with another type", `{action: {drain: {}}}`, "spec.action", "drain belongs to type Drain"},
	{"external with another type", `{action: {external: {}}}`, "spec.action", "external belongs to type External"},
	{
		"no wait for a mark", `{action: {type: External, external: {waitFor: 500ms}}}`, "spec.action.external.waitFor",
		"must be between 1s and 24h",
	},
	{
		"too long a wait for a mark", `{action: {type: External, external: {waitFor: 25h}}}`, "spec.action.external.waitFor",
		"must be between 1s and 24h",
	},
	{"a dry run in words", `{dryRun: "yes"}`, "spec.dryRun", "must be of type boolean"},
	{"a fork that lasts", `{duration: 5s, action: {type: BackgroundSave}}`, "spec.duration", "does not last"},
	{
		"a kill by Chaos Mesh that lasts", `{engine: ChaosMesh, duration: 5s}`, "spec.duration",
		"ChaosMesh kills a pod once",
	},
	{"no time at all", `{duration: 99ms, action: {type: Hang}}`, "spec.duration", "must be between 100ms and 24h"},
	{
		"too short", `{duration: 999ms, action: {type: ClientPause}}`, "spec.duration",
		"must be at least 1s, unless type is Hang",
	},
	{"a hang too long", `{duration: 601s, action: {type: Hang}}`, "spec.duration", "must be at most 10m with type Hang"},
	{"killed for too long", `{duration: 61m}`, "spec.duration", "must be at most 1h"},
	{
		"a volume held for too long", `{duration: 61m, action: {type: VolumeAttachDelay}}`, "spec.duration",
		"must be at most 1h",
	},
	{"a day and more", `{duration: 25h, action: {type: ClientPause}}`, "spec.duration", "must be between 100ms and 24h"},
	{
		"pods of another load", `{probePods: {tolerations: [{operator: Exists}]}}`, "spec.probePods",
		"set pods of the load test",
	},
	{
		"a label of Redquake on probe pods",
		`{loadTestRef: null, target: {service: {name: redis}}, probePods: {labels: {redquake.dev/fault: other}}}`,
		"spec.probePods.labels", "are set by Redquake",
	},
	{"a setting that ends the server", `{setting: true}`, "spec.action.type", "a setting lasts and leaves Redis serving"},
	{
		"a setting that silences the server", `{setting: true, action: {type: ClientPause}}`, "spec.action.type",
		"a setting lasts and leaves Redis serving",
	},
	{
		"a setting of no load test",
		`{setting: true, loadTestRef: null, target: {service: {name: redis}}, action: {type: Config,
		  config: {parameters: {hz: "20"}}}}`, "spec.setting", "a setting needs loadTestRef",
	},
	{
		"a setting that waits for steady throughput",
		`{setting: true, trigger: {steadyFor: 10s}, action: {type: Config, config: {parameters: {hz: "20"}}}}`,
		"spec.trigger", "a setting is injected at once",
	},
	{
		"a setting in the middle of a load",
		`{setting: true, trigger: {after: 10s}, action: {type: Config, config: {parameters: {hz: "20"}}}}`, "spec.trigger",
		"a setting is injected at once",
	},
	{
		"a setting with a timeout",
		`{setting: true, trigger: {timeout: 10m}, action: {type: Config, config: {parameters: {hz: "20"}}}}`, "spec.trigger",
		"a setting is injected at once",
	},
	{
		"a setting that is measured",
		`{setting: true, objectives: {maxErrors: 0}, action: {type: Config, config: {parameters: {hz: "20"}}}}`,
		"spec.objectives", "nothing is measured against a setting",
	},
	{
		"a setting that stops at an outage",
		`{setting: true, stopIf: {outage: 1s}, action: {type: Config, config: {parameters: {hz: "20"}}}}`, "spec.stopIf",
		"stopIf can have queries only",
	},
	{
		"a setting that stops at lost writes",
		`{setting: true, stopIf: {lostWrites: 1}, action: {type: Config, config: {parameters: {hz: "20"}}}}`, "spec.stopIf",
		"stopIf can have queries only",
	},
	{
		"a setting for load pods",
		`{setting: true, engine: ChaosMesh, action: {type: NetworkDelay, networkDelay: {latency: 10ms, peers: [Clients]}}}`,
		"spec.action", "set other peers than Clients",
	},
	{"neither load test nor target", `{loadTestRef: null}`, "spec", "set loadTestRef"},
	{"load test without name", `{loadTestRef: {name: ""}}`, "spec.loadTestRef.name", "at least 1 chars long"},
	{"target without Redis", `{target: {}}`, "spec.target", "set service, addresses or podSelector"},
	{"unknown engine", `{engine: ChaosMonkey}`, "spec.engine", `supported values: "Native"`},
	{"unknown role", `{select: {role: Master}}`, "spec.select.role", `supported values: "Primary", "Replica", "Any"`},
	{"Count without count", `{select: {mode: Count}}`, "spec.select", "mode Count needs it"},
	{"count without Count", `{select: {count: 2}}`, "spec.select", "count belongs to mode Count"},
	{"count 0", `{select: {mode: Count, count: 0}}`, "spec.select.count", "greater than or equal to 1"},
	{
		"stop conditions without one", `{stopIf: {}}`, "spec.stopIf",
		"set at least one of outage, errorRate, lostWrites, queries",
	},
	{"stop at an outage too short", `{stopIf: {outage: 99ms}}`, "spec.stopIf.outage", "must be between 100ms and 24h"},
	{"stop at no error", `{stopIf: {errorRate: "0.0%"}}`, "spec.stopIf.errorRate", "must be above 0%"},
	{"stop at a share without %", `{stopIf: {errorRate: "0.5"}}`, "spec.stopIf.errorRate", "should match"},
	{"stop at no lost write", `{stopIf: {lostWrites: 0}}`, "spec.stopIf.lostWrites", "greater than or equal to 1"},
	{
		"stop at lost writes of a probe load",
		`{loadTestRef: null, target: {service: {name: redis}}, stopIf: {lostWrites: 1}}`, "spec.stopIf",
		"stopIf.lostWrites needs loadTestRef",
	},
	{
		"query without a limit", `{stopIf: {queries: [{name: a, prometheus: {url: "http://p"}, query: up}]}}`,
		"spec.stopIf.queries[0]", "set above or below",
	},
	{
		"query with two limits",
		`{stopIf: {queries: [{name: a, prometheus: {url: "http://p"}, query: up, above: "1", below: "0"}]}}`,
		"spec.stopIf.queries[0]", "set above or below",
	},
	{
		"limit that is no number", `{stopIf: {queries: [{name: a, prometheus: {url: "http://p"}, query: up, above: "1%"}]}}`,
		"spec.stopIf.queries[0].above", "should match",
	},
	{
		"query too often",
		`{stopIf: {queries: [{name: a, prometheus: {url: "http://p"}, query: up, above: "1", every: 999ms}]}}`,
		"spec.stopIf.queries[0].every", "must be between 1s and 1m",
	},
	{
		"query too seldom",
		`{stopIf: {queries: [{name: a, prometheus: {url: "http://p"}, query: up, above: "1", every: 61s}]}}`,
		"spec.stopIf.queries[0].every", "must be between 1s and 1m",
	},
	{
		"two queries of one name",
		`{stopIf: {queries: [{name: a, prometheus: {url: "http://p"}, query: up, above: "1"}, {name: a,
		  prometheus: {url: "http://p"}, query: up, below: "1"}]}}`, "spec.stopIf.queries[1]", "Duplicate value",
	},
	{
		"query of another scheme",
		`{stopIf: {queries: [{name: a, prometheus: {url: "file:///etc/passwd"}, query: up, above: "1"}]}}`,
		"spec.stopIf.queries[0].prometheus.url", "should match",
	},
	{
		"password in the URL",
		`{stopIf: {queries: [{name: a, prometheus: {url: "http://u:p@host"}, query: up, above: "1"}]}}`,
		"spec.stopIf.queries[0].prometheus.url", "should match",
	},
	{
		"parameters in the URL",
		`{stopIf: {queries: [{name: a, prometheus: {url: "http://host/?x=1"}, query: up, above: "1"}]}}`,
		"spec.stopIf.queries[0].prometheus.url", "should match",
	},
	{
		"TLS in plain", `{stopIf: {queries: [{name: a, prometheus: {url: "http://host", tls: {}}, query: up, above: "1"}]}}`,
		"spec.stopIf.queries[0].prometheus", "tls needs a url that begins with https://",
	},
	{"Percent without percent", `{select: {mode: Percent}}`, "spec.select", "mode Percent needs it"},
	{"percent without Percent", `{select: {percent: 20}}`, "spec.select", "percent belongs to mode Percent"},
	{
		"percent with Count", `{select: {mode: Count, count: 2, percent: 20}}`, "spec.select",
		"percent belongs to mode Percent",
	},
	{"percent 0", `{select: {mode: Percent, percent: 0}}`, "spec.select.percent", "greater than or equal to 1"},
	{"percent 101", `{select: {mode: Percent, percent: 101}}`, "spec.select.percent", "less than or equal to 100"},
	{"no names", `{select: {names: []}}`, "spec.select.names", "at least 1 items"},
	{"an empty name", `{select: {names: [""]}}`, "spec.select.names[0]", "at least 1 chars long"},
	{"a name twice", `{select: {names: [redis-0, redis-0]}}`, "spec.select.names[1]", "Duplicate"},
	{"a zone that is no label", `{select: {zone: "eu west"}}`, "spec.select.zone", "should match"},
	{"unknown pick", `{select: {pick: Last}}`, "spec.select.pick", `supported values: "First", "Random"`},
	{"unknown allowance", `{allow: [Everything]}`, "spec.allow[0]", `"Expiry"`},
	{
		"no operator to cut off", `{action: {type: NetworkPartition, networkPartition: {peers: [Operator]}}}`,
		"spec.action.networkPartition.operator", "set operator with peers Operator, and only then",
	},
	{
		"an operator that is no peer",
		`{action: {type: NetworkLoss, networkLoss: {loss: 5%, operator: {deployment: a}}}}`,
		"spec.action.networkLoss.operator", "set operator with peers Operator, and only then",
	},
	{
		"an operator by Chaos Mesh",
		`{engine: ChaosMesh, action: {type: NetworkPartition, networkPartition: {peers: [Operator], operator: {deployment: a}}}}`,
		"spec.action.networkPartition.peers", "no Operator",
	},
	{
		"a delay to an operator",
		`{engine: ChaosMesh, action: {type: NetworkDelay, networkDelay: {latency: 5ms, peers: [Operator]}}}`,
		"spec.action.networkDelay", "there is no delay to the Operator",
	},
	{
		"two triggers", `{trigger: {steadyFor: 10s, after: 10s}}`, "spec.trigger",
		"set one of steadyFor, after and afterBeside",
	},
	{
		"two triggers beside another fault", `{beside: [other], trigger: {after: 10s, afterBeside: 10s}}`, "spec.trigger",
		"set one of steadyFor, after and afterBeside",
	},
	{"after nothing", `{trigger: {afterBeside: 10s}}`, "spec.trigger.afterBeside", "set beside, or after"},
	{
		"long after those beside", `{beside: [other], trigger: {afterBeside: 61m}}`, "spec.trigger.afterBeside",
		"must be between 0s and 1h",
	},
	{
		"a setting beside a fault", `{setting: true, beside: [other], action: {type: Config, config: {parameters: {hz: "20"}}}}`,
		"spec.beside", "leave beside out",
	},
	{"an external fault beside another one", `{beside: [other], action: {type: External}}`, "spec.beside", "leave beside out"},
	{"beside no fault", `{beside: []}`, "spec.beside", "should have at least 1 items"},
	{"beside five", `{beside: [a, b, c, d, e]}`, "spec.beside", "must have at most 4 items"},
	{"beside one twice", `{beside: [a, a]}`, "spec.beside[1]", "Duplicate value"},
	{"beside what can be no fault", `{beside: [a.b]}`, "spec.beside[0]", "should match"},
	{"steady for too short", `{trigger: {steadyFor: 1s}}`, "spec.trigger.steadyFor", "must be between 2s and 1h"},
	{"waits for ever", `{trigger: {timeout: 25h}}`, "spec.trigger.timeout", "must be between 1s and 24h"},
	{"no time to recover", `{recoveryDeadline: 0s}`, "spec.recoveryDeadline", "must be between 1s and 24h"},
	{"deadline in words", `{recoveryDeadline: soon}`, "spec.recoveryDeadline", "should match"},
	{
		"grace below 0", `{action: {podKill: {gracePeriodSeconds: -1}}}`, "spec.action.podKill.gracePeriodSeconds",
		"greater than or equal to 0",
	},
	{
		"unknown method", `{action: {type: ProcessCrash, processCrash: {method: Unplug}}}`, "spec.action.processCrash.method",
		`supported values: "Shutdown", "Segfault"`,
	},
	{"misspelt field", `{action: {podkill: {}}}`, "spec.action.podkill", "unknown field"},
}

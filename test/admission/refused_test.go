//go:build integration

package admission_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each refusal names the field and the reason.
type refusal struct {
	name   string
	change string // to the smallest spec
	field  string
	why    string
}

var refusedLoadTests = []refusal{
	{"no workload", `{workload: null}`, "spec.workload", "Required value"},
	{"no commands", `{workload: {commands: []}}`, "spec.workload.commands", "at least 1 items"},
	{
		"command without words", `{workload: {commands: [{name: get, command: []}]}}`, "spec.workload.commands[0].command",
		"at least 1 items",
	},
	{
		"command without a name", `{workload: {commands: [{command: [PING]}]}}`, "spec.workload.commands[0].name",
		"Required value",
	},
	{
		"two commands of one name", `{workload: {commands: [{name: a, command: [PING]}, {name: a, command: [INFO]}]}}`,
		"spec.workload.commands[1]", "Duplicate value",
	},
	{
		"weight 0", `{workload: {commands: [{name: a, weight: 0, command: [PING]}]}}`, "spec.workload.commands[0].weight",
		"greater than or equal to 1",
	},
	{"nothing in workload", `{workload: {commands: null}}`, "spec.workload", "set exactly one of"},
	{"two workloads", `{workload: {rateLimiter: {limit: 1, window: 1s}}}`, "spec.workload", "set exactly one of"},
	{
		"unknown test", `{workload: {commands: null, benchmark: {tests: [sort]}}}`, "spec.workload.benchmark.tests[0]",
		"supported values",
	},
	{
		"unknown order", `{workload: {commands: null, benchmark: {tests: [set], order: Random}}}`,
		"spec.workload.benchmark.order", "supported values",
	},
	{
		"a search through tests in sequence",
		`{load: {users: null, search: {from: 1, to: 9}}, objectives: {maxErrorRate: "1%"}, workload: {commands: null,
		  benchmark: {tests: [set, get]}}}`, "spec", "set order: Mixed, or one test",
	},
	{
		"the same test twice", `{workload: {commands: null, benchmark: {tests: [set, set]}}}`,
		"spec.workload.benchmark.tests[1]", "Duplicate value",
	},
	{
		"more to find than members", `{workload: {commands: null, ranking: {members: 1}}}`, "spec.workload.ranking",
		"findCount must not be above members",
	},
	{
		"ranking of nothing", `{workload: {commands: null, ranking: {members: 100, weights: {set: 0}}}}`,
		"spec.workload.ranking.weights", "at least one weight must be above 0",
	},
	{
		"window too long", `{workload: {commands: null, rateLimiter: {limit: 1, window: 25h}}}`,
		"spec.workload.rateLimiter.window", "must be between 1ms and 24h",
	},
	{
		"data source name in plain",
		`{workload: {commands: null, cacheAside: {database: {driver: mysql, dsn: x, query: x}}}}`,
		"spec.workload.cacheAside.database.dsn", "unknown field",
	},
	{
		"no hits",
		`{workload: {commands: null, cacheAside: {hitRatio: "0%", database: {driver: mysql, dsnSecretRef: {name: a, key: b},
		  query: x}}}}`, "spec.workload.cacheAside.hitRatio", "must be above 0%",
	},
	{
		"URL of another scheme", `{workload: {commands: null, http: {url: "ftp://shop"}}}`, "spec.workload.http.url",
		"should match",
	},

	{
		"no target", `{target: null}`, "spec",
		"set target: only workload.http, and workload.cacheAside in mode DatabaseOnly, load no Redis",
	},
	{
		"a cache without a target",
		`{target: null, workload: {commands: null, cacheAside: {database: {driver: mysql, dsnSecretRef: {name: a, key: b.c},
		  query: SELECT 1}}}}`, "spec", "set target",
	},
	{"nothing in target", `{target: {service: null}}`, "spec.target", "set service, addresses or podSelector"},
	{"service and addresses", `{target: {addresses: ["redis:6379"]}}`, "spec.target", "set one of them"},
	{"address without port", `{target: {service: null, addresses: [redis]}}`, "spec.target.addresses[0]", "should match"},
	{
		"the same address twice", `{target: {service: null, addresses: ["a:1", "a:1"]}}`, "spec.target.addresses[1]",
		"Duplicate value",
	},
	{"port 0", `{target: {service: {port: 0}}}`, "spec.target.service.port", "greater than or equal to 1"},
	{"port 65536", `{target: {service: {port: 65536}}}`, "spec.target.service.port", "less than or equal to 65535"},
	{"unknown topology", `{target: {topology: Ring}}`, "spec.target.topology", `supported values: "Auto"`},
	{"Sentinel without sentinels", `{target: {topology: Sentinel}}`, "spec.target", "topology Sentinel needs sentinel"},
	{
		"sentinels of a cluster", `{target: {topology: Cluster, sentinel: {addresses: ["a:1"]}}}`, "spec.target",
		"sentinel belongs to topology Sentinel or Auto",
	},
	{
		"sentinels nowhere", `{target: {topology: Sentinel, sentinel: {masterName: a}}}`, "spec.target.sentinel",
		"set service or addresses",
	},
	{
		"sentinels twice", `{target: {topology: Sentinel, sentinel: {service: {name: a}, addresses: ["a:1"]}}}`,
		"spec.target.sentinel", "set service or addresses",
	},
	{
		"database of a cluster", `{target: {topology: Cluster, database: 1}}`, "spec.target",
		"a cluster has only database 0",
	},
	{
		"options of another driver", `{client: {goRedis: {poolSize: 5}}}`, "spec.client",
		"goRedis belongs to driver GoRedis",
	},
	{
		"go-redis multiplexed", `{client: {driver: GoRedis, mode: Multiplexed}}`, "spec.client",
		"mode Multiplexed belongs to driver Native",
	},
	{"go-redis and a pipeline", `{client: {driver: GoRedis, pipeline: 2}}`, "spec.client", "pipeline must be 1"},
	{
		"go-redis and added latency", `{client: {driver: GoRedis, addedLatency: 1ms}}`, "spec.client",
		"addedLatency belongs to driver Native",
	},
	{"go-redis and retries", `{client: {driver: GoRedis, retries: 1}}`, "spec.client", "set goRedis.maxRetries"},
	{"addedLatency too long", `{client: {addedLatency: 11s}}`, "spec.client.addedLatency", "must be between 0s and 10s"},
	{
		"connectionMaxAge too short", `{client: {connectionMaxAge: 1ms}}`, "spec.client.connectionMaxAge",
		"must be between 10ms and 24h",
	},
	{
		"maxRetries below -1", `{client: {driver: GoRedis, goRedis: {maxRetries: -2}}}`, "spec.client.goRedis.maxRetries",
		"greater than or equal to -1",
	},
	{
		"password without key", `{target: {auth: {passwordSecretRef: {name: redis}}}}`,
		"spec.target.auth.passwordSecretRef.key", "Required value",
	},
	{"password in plain", `{target: {auth: {password: secret}}}`, "spec.target.auth.password", "unknown field"},
	{"database below 0", `{target: {database: -1}}`, "spec.target.database", "greater than or equal to 0"},

	{"no load", `{load: null}`, "spec.load", "Required value"},
	{"neither users nor rate", `{load: {users: null}}`, "spec.load", "without one of them there is no load"},
	{
		"users and stages", `{load: {duration: null, stages: [{duration: 10s, users: 1}]}}`, "spec.load",
		"stages say users or rate themselves",
	},
	{
		"duration and stages", `{load: {users: null, stages: [{duration: 10s, users: 1}]}}`, "spec.load",
		"duration and requests must be absent",
	},
	{
		"stages and ramp-up", `{load: {users: null, duration: null, rampUp: 1s, stages: [{duration: 10s, users: 1}]}}`,
		"spec.load", "stages are the whole course of the load",
	},
	{
		"stages and warm-up", `{load: {users: null, duration: null, warmUp: 1s, stages: [{duration: 10s, users: 1}]}}`,
		"spec.load", "stages are the whole course of the load",
	},
	{
		"stages of rates and think time",
		`{load: {users: null, duration: null, thinkTime: 1s, stages: [{duration: 10s, rate: 1}]}}`, "spec.load",
		"thinkTime belongs to users",
	},
	{
		"fewer users than pods", `{load: {users: 1}, pods: {count: 2}}`, "<nil>",
		"spec.load.users must be at least spec.pods.count",
	},
	{
		"fewer requests than pods", `{load: {users: 2, duration: null, requests: 1}, pods: {count: 2}}`, "<nil>",
		"spec.load.requests must be at least spec.pods.count",
	},
	{"no stages", `{load: {users: null, duration: null, stages: []}}`, "spec.load.stages", "at least 1 items"},
	{
		"stages of two kinds",
		`{load: {users: null, duration: null, stages: [{duration: 10s, users: 1}, {duration: 10s, rate: 1}]}}`, "spec.load",
		"all stages must set users, or all must set rate",
	},
	{
		"stage with users and rate", `{load: {users: null, duration: null, stages: [{duration: 10s, users: 1, rate: 1}]}}`,
		"spec.load.stages[0]", "set users or rate",
	},
	{
		"stage without duration", `{load: {users: null, duration: null, stages: [{users: 1}]}}`,
		"spec.load.stages[0].duration", "Required value",
	},
	{"no end", `{load: {duration: null}}`, "spec.load", "the load must end"},
	{"users 0", `{load: {users: 0}}`, "spec.load.users", "greater than or equal to 1"},
	{"rate 0", `{load: {users: null, rate: 0}}`, "spec.load.rate", "greater than or equal to 1"},
	{
		"search without a limit", `{load: {users: null, search: {}}}`, "spec",
		"load.search needs one of objectives.maxLatencyP50",
	},
	{
		"search without a suitable objective", `{load: {users: null, search: {}}, objectives: {minThroughput: "5"}}`, "spec",
		"load.search needs one of objectives.maxLatencyP50",
	},
	{
		"search and lost pods", `{load: {users: null, search: {}}, objectives: {maxErrorRate: "1%"}, pods: {lost: Continue}}`,
		"spec", "load.search needs pods.lost: Fail",
	},
	{"objectives of nothing", `{objectives: {over: Everything}}`, "spec.objectives", "set at least one of minThroughput"},
	{"what faults do is theirs to judge", `{objectives: {maxOutage: 1s}}`, "spec.objectives.maxOutage", "unknown field"},
	{
		"an extension of requests", `{load: {requests: 100, untilFaultsSettle: 1m}}`, "spec.load",
		"untilFaultsSettle extends duration",
	},
	{
		"an extension of a search",
		`{load: {users: null, duration: 1m, search: {}, untilFaultsSettle: 1m}, objectives: {maxErrorRate: "1%"}}`,
		"spec.load", "untilFaultsSettle extends duration",
	},
	{
		"an extension of nothing", `{load: {untilFaultsSettle: 0s}}`, "spec.load.untilFaultsSettle",
		"must be between 1s and 24h",
	},
	{
		"search and rate", `{load: {users: null, rate: 5, search: {}}, objectives: {maxErrorRate: "1%"}}`, "spec.load",
		"search decides the rates itself",
	},
	{
		"search and requests", `{load: {users: null, requests: 5, search: {}}, objectives: {maxErrorRate: "1%"}}`,
		"spec.load", "search decides the rates itself",
	},
	{
		"search for ever", `{load: {users: null, duration: null, search: {}}, objectives: {maxErrorRate: "1%"}}`, "spec.load",
		"set duration or requests",
	},
	{
		"search and think time", `{load: {users: null, thinkTime: 1s, search: {}}, objectives: {maxErrorRate: "1%"}}`,
		"spec.load", "search is an open loop",
	},
	{
		"search from above", `{load: {users: null, search: {from: 10, to: 5}}, objectives: {maxErrorRate: "1%"}}`,
		"spec.load.search", "from must not be above to",
	},
	{
		"search of no precision", `{load: {users: null, search: {precision: 0.5%}}, objectives: {maxErrorRate: "1%"}}`,
		"spec.load.search.precision", "",
	},
	{
		"search of no trial", `{load: {users: null, search: {trial: 10ms}}, objectives: {maxErrorRate: "1%"}}`,
		"spec.load.search.trial", "must be between 1s and 1h",
	},
	{
		"search that settles for an hour", `{load: {users: null, search: {settle: 1h}}, objectives: {maxErrorRate: "1%"}}`,
		"spec.load.search.settle", "must be between 0s and 10m",
	},
	{"requests 0", `{load: {requests: 0}}`, "spec.load.requests", "greater than or equal to 1"},
	{"thinkTime with rate", `{load: {rate: 1, thinkTime: 1s}}`, "spec.load", "thinkTime belongs to users"},
	{
		"lost writes limited without verify", `{objectives: {maxLostWrites: 0}}`, "spec",
		"objectives.maxLostWrites needs verify.acknowledgedWrites",
	},
	{
		"a container of no pods", `{target: {service: null, addresses: ["a:1"], container: redis}}`, "spec.target",
		"set podSelector or service",
	},
	{
		"a port of no pods", `{target: {service: null, sentinel: {addresses: ["a:1"]}, podPort: 6379}}`, "spec.target",
		"set podSelector or service",
	},
	{"podPort 0", `{target: {podPort: 0}}`, "spec.target.podPort", "greater than or equal to 1"},
	{"podPort 65536", `{target: {podPort: 65536}}`, "spec.target.podPort", "less than or equal to 65535"},
	{"a container that cannot be", `{target: {container: Redis_1}}`, "spec.target.container", "should match"},
	{
		"a label of Redquake", `{pods: {labels: {redquake.dev/loadtest: other}}}`, "spec.pods.labels",
		"are set by Redquake and by the Job controller",
	},
	{
		"the component of another", `{pods: {labels: {app.kubernetes.io/component: web}}}`, "spec.pods.labels",
		"are set by Redquake and by the Job controller",
	},
	{
		"a label of the Job controller", `{pods: {labels: {batch.kubernetes.io/job-name: other}}}`, "spec.pods.labels",
		"are set by Redquake and by the Job controller",
	},
	{"a label that is none", `{pods: {labels: {"a b": c}}}`, "spec.pods.labels", "each key must be that of a label"},
	{"a value that is none of a label", `{pods: {labels: {a: "b c"}}}`, "spec.pods.labels.a", "should match"},
	{
		"a label of Redquake on the Job", `{pods: {jobLabels: {redquake.dev/loadtest: other}}}`, "spec.pods.jobLabels",
		"are set by Redquake and by the Job controller",
	},
	{
		"a label of the Job that is none", `{pods: {jobLabels: {"a b": c}}}`, "spec.pods.jobLabels",
		"each key must be that of a label",
	},
	{
		"an annotation of Redquake", `{pods: {annotations: {karpenter.sh/do-not-disrupt: "false"}}}`, "spec.pods.annotations",
		"are set by Redquake and by the Job controller",
	},
	{
		"an annotation that is none", `{pods: {annotations: {"/a": b}}}`, "spec.pods.annotations",
		"each key must be that of an annotation",
	},
	{
		"a sidecar elsewhere", `{pods: {annotations: {sidecar.redquake.dev/quit: "http://10.0.0.1:15020/quitquitquit"}}}`,
		"spec.pods.annotations", "are URLs of the pod itself",
	},
	{
		"an unknown instruction", `{pods: {annotations: {sidecar.redquake.dev/exit: "http://localhost:1/"}}}`,
		"spec.pods.annotations", "are URLs of the pod itself",
	},
	{
		"a long annotation", `{pods: {annotations: {a: "` + strings.Repeat("x", 4097) + `"}}}`, "spec.pods.annotations.a",
		"Too long",
	},
	{
		"a pull secret without a name", `{pods: {imagePullSecrets: [{}]}}`, "spec.pods.imagePullSecrets[0].name",
		"Required value",
	},
	{
		"a pull secret twice", `{pods: {imagePullSecrets: [{name: a}, {name: a}]}}`, "spec.pods.imagePullSecrets[1]",
		"Duplicate value",
	},
	{
		"a priority class that cannot be", `{pods: {priorityClassName: "High!"}}`, "spec.pods.priorityClassName",
		"should match",
	},
	{
		"an affinity to nothing", `{pods: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}}`,
		"spec.pods.affinity.podAffinity", "Required value",
	},
	{
		"reads from replicas of one server", `{target: {topology: Standalone}, client: {readFrom: Replica}}`, "spec",
		"client.readFrom Replica and Any need replicas",
	},
	{
		"the layout of one server",
		`{target: {topology: Standalone}, client: {driver: GoRedis, goRedis: {stateReloadInterval: 5s}}}`, "spec",
		"client.goRedis.stateReloadInterval belongs to a cluster",
	},
	{"stale reads without a ledger", `{verify: {staleReads: true}}`, "spec.verify", "go with acknowledgedWrites"},
	{"a share of nothing", `{verify: {acknowledgedWrites: true, share: 0.0%}}`, "spec.verify.share", "must be above 0%"},
	{"a share without a sign", `{verify: {acknowledgedWrites: true, share: "1"}}`, "spec.verify.share", "should match"},
	{"misspelt field", `{load: {user: 1}}`, "spec.load.user", "unknown field"},

	{"duration in words", `{load: {duration: 10 seconds}}`, "spec.load.duration", "should match"},
	{"duration in days", `{load: {duration: 1d}}`, "spec.load.duration", "should match"},
	{"duration without unit", `{load: {duration: "10"}}`, "spec.load.duration", "should match"},
	{"duration as a number", `{load: {duration: 10}}`, "spec.load.duration", "must be of type string"},
	{"duration below 0", `{load: {duration: -10s}}`, "spec.load.duration", "should match"},
	{"duration too short", `{load: {duration: 999ms}}`, "spec.load.duration", "must be between 1s and 168h"},
	{"duration too long", `{load: {duration: 169h}}`, "spec.load.duration", "must be between 1s and 168h"},
	{
		"duration beyond the clock", `{load: {duration: 9999999999999h}}`, "spec.load.duration",
		"must be between 1s and 168h",
	},
	{"duration of many words", `{load: {duration: 1s1s1s1s1s1s1s1s1s}}`, "spec.load.duration", "Too long"},
	{
		"no time for a reply", `{client: {requestTimeout: 0s}}`, "spec.client.requestTimeout",
		"must be between 10ms and 60s",
	},
	{
		"interval off the grid", `{observe: {interval: 150ms}}`, "spec.observe.interval",
		"must be 50ms, 100ms, 200ms, 500ms or 1s",
	},
	{"INFO too often", `{observe: {redisInfo: 50ms}}`, "spec.observe.redisInfo", "must be 0s, or between 100ms and 1h"},
	{
		"every pod observed", `{observe: {pods: [{name: api, selector: {}}]}}`, "spec.observe.pods[0].selector",
		"must not be empty",
	},
	{
		"observed pods without a name", `{observe: {pods: [{selector: {matchLabels: {app: api}}}]}}`,
		"spec.observe.pods[0].name", "Required",
	},
	{
		"two observed pods of a name",
		`{observe: {pods: [{name: a, selector: {matchLabels: {app: a}}}, {name: a, selector: {matchLabels: {app: b}}}]}}`,
		"spec.observe.pods[1]", "Duplicate",
	},

	{"no connections", `{client: {connections: 0}}`, "spec.client.connections", "greater than or equal to 1"},
	{"too many connections", `{client: {connections: 10001}}`, "spec.client.connections", "less than or equal to 10000"},
	{"unknown protocol", `{client: {protocol: RESP4}}`, "spec.client.protocol", `supported values: "RESP2", "RESP3"`},
	{"no keys", `{workload: {keyspace: {keys: 0}}}`, "spec.workload.keyspace.keys", "greater than or equal to 1"},
	{
		"unknown distribution", `{workload: {keyspace: {distribution: Pareto}}}`, "spec.workload.keyspace.distribution",
		"supported values",
	},
	{
		"two sizes", `{workload: {values: {bytes: 1, minBytes: 1, maxBytes: 2}}}`, "spec.workload.values",
		"set bytes, or minBytes and maxBytes",
	},
	{"half a range", `{workload: {values: {minBytes: 1}}}`, "spec.workload.values", "set both minBytes and maxBytes"},
	{
		"range upside down", `{workload: {values: {minBytes: 2, maxBytes: 1}}}`, "spec.workload.values",
		"minBytes must not be above maxBytes",
	},
	{"no pods", `{pods: {count: 0}}`, "spec.pods.count", "greater than or equal to 1"},
	{"unknown policy", `{pods: {lost: Ignore}}`, "spec.pods.lost", `supported values: "Fail", "Continue"`},
	{"probe too fast", `{probe: {rate: 1001}}`, "spec.probe.rate", "less than or equal to 1000"},

	{"no objective", `{objectives: {}}`, "spec.objectives", "set at least one of minThroughput"},
	{"percentile 0", `{objectives: {maxLatencyP99: 0s}}`, "spec.objectives.maxLatencyP99", "no request takes no time"},
	{"median 0", `{objectives: {maxLatencyP50: 0ms}}`, "spec.objectives.maxLatencyP50", "no request takes no time"},
	{"throughput 0", `{objectives: {minThroughput: "0.0"}}`, "spec.objectives.minThroughput", "must be above 0"},
	{
		"throughput as a number", `{objectives: {minThroughput: 3000}}`, "spec.objectives.minThroughput",
		"must be of type string",
	},
	{"error rate without percent", `{objectives: {maxErrorRate: "0.1"}}`, "spec.objectives.maxErrorRate", "should match"},
	{"error rate above 100%", `{objectives: {maxErrorRate: "100.1%"}}`, "spec.objectives.maxErrorRate", "should match"},
	{"ttl below 0", `{ttlSecondsAfterFinished: -1}`, "spec.ttlSecondsAfterFinished", "greater than or equal to 0"},
}

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
		"Chaos Mesh with a type that it does not support", `{engine: ChaosMesh, action: {type: Hang}}`, "spec",
		"engine ChaosMesh injects PodKill",
	},
	{"what only Chaos Mesh can do", `{action: {type: CPUStress}}`, "spec", "all but PodKill need it"},
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
		`{setting: true, engine: ChaosMesh, action: {type: NetworkDelay, networkDelay: {latency: 10ms, peers: Clients}}}`,
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
	{"two triggers", `{trigger: {steadyFor: 10s, after: 10s}}`, "spec.trigger", "set steadyFor or after"},
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

func TestRefused(t *testing.T) {
	for kind, cases := range map[string][]refusal{
		"RedisLoadTest": refusedLoadTests, "RedisFault": refusedFaults, "RedisExperiment": refusedExperiments,
		"RedisExperimentSchedule": append(refusedSchedules, inTemplates(refusedExperiments)...),
	} {
		t.Run(kind, func(t *testing.T) {
			for _, test := range cases {
				t.Run(test.name, func(t *testing.T) {
					o := object(t, kind, name(t), test.change)
					expectFileRefused(t, o, test.field, test.why)
					expectRefusal(t, strict.Create(t.Context(), o, client.DryRunAll), test.field, test.why)
				})
			}
		})
	}
}

// A name that leaves no room for its children's is refused at once, not when the children cannot be made.
func TestNameTooLong(t *testing.T) {
	for kind, longest := range map[string]int{
		"RedisLoadTest":           52,
		"RedisFault":              46,
		"RedisExperiment":         28,
		"RedisExperimentSchedule": 18,
	} {
		t.Run(kind, func(t *testing.T) {
			fits := object(t, kind, strings.Repeat("x", longest), `{}`)
			if err := strict.Create(t.Context(), fits, client.DryRunAll); err != nil {
				t.Errorf("%d characters: %v", longest, err)
			}
			err := strict.Create(t.Context(), object(t, kind, strings.Repeat("x", longest+1), `{}`), client.DryRunAll)
			expectRefusal(t, err, "metadata: Invalid value", "the name must be at most")
		})
	}
}

func expectRefusal(t *testing.T, err error, field, why string) {
	t.Helper()
	switch {
	case err == nil:
		t.Error("accepted")
	case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
		t.Errorf("refused for another reason: %v", err)
	case !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), why):
		t.Errorf("refused with\n%v\nwhich does not contain %q and %q", err, field, why)
	}
}

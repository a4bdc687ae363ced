//go:build integration

package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/plan"
)

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
	{"unknown probe", `{probe: {operation: Ping}}`, "spec.probe.operation", "supported values"},
	{"unknown arrivals", `{load: {users: null, rate: 5, arrivals: Normal}}`, "spec.load.arrivals", "supported values"},
	{"unit of users", `{load: {ratePer: Minute}}`, "spec.load", "ratePer belongs to rate"},
	{"unknown unit", `{load: {users: null, rate: 5, ratePer: Day}}`, "spec.load.ratePer", "supported values"},
	{"arrivals of users", `{load: {arrivals: Poisson}}`, "spec.load", "arrivals Poisson belongs to rate"},
	{
		"zipf of a uniform distribution", `{workload: {keyspace: {zipf: {exponent: "2"}}}}`, "spec.workload.keyspace",
		"zipf belongs to distribution Zipf",
	},
	{
		"gaussian of another distribution", `{workload: {keyspace: {distribution: Zipf, gaussian: {centre: 1%}}}}`,
		"spec.workload.keyspace", "gaussian belongs to distribution Gaussian",
	},
	{
		"exponent 0", `{workload: {keyspace: {distribution: Zipf, zipf: {exponent: "0"}}}}`,
		"spec.workload.keyspace.zipf.exponent", "must be between 0.01 and 10",
	},
	{
		"deviation 0", `{workload: {keyspace: {distribution: Gaussian, gaussian: {deviation: 0%}}}}`,
		"spec.workload.keyspace.gaussian.deviation", "must be above 0%",
	},
	{"seed 0", `{workload: {seed: 0}}`, "spec.workload.seed", "greater than or equal to 1"},
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
		"locks at a rate", `{workload: {commands: null, lock: {}}, load: {users: null, rate: 5}}`, "spec",
		"workload.lock needs load.users",
	},
	{
		"locks in stages at a rate",
		`{workload: {commands: null, lock: {}}, load: {users: null, duration: null,
		  stages: [{duration: 5s, users: 4}, {duration: 5s, rate: 4}]}}`,
		"spec", "workload.lock needs load.users",
	},
	{
		"locks that expire before they are renewed", `{workload: {commands: null, lock: {ttl: 1s, renewEvery: 1s}}}`,
		"spec.workload.lock", "renewEvery must be below ttl",
	},
	{
		"locks of a library that wait", `{workload: {commands: null, lock: {waitReplicas: 1}}, client: {driver: Jedis}}`,
		"spec", "set client.driver Native",
	},
	{"an overlap of no locks", `{objectives: {maxLockOverlap: 0s}}`, "spec", "objectives.maxLockOverlap needs workload.lock"},
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
		"options of no library", `{client: {options: {PoolSize: 5}}}`, "spec.client",
		"options belong to the library of a driver",
	},
	{"options that are none", `{client: {driver: GoRedis, options: 5}}`, "spec.client.options", "must be of type object"},
	{
		"an image without an adapter", `{client: {driver: Rueidis, image: a}}`, "spec.client",
		"image is that of an adapter",
	},
	{
		"a library and an API", `{workload: {commands: null, http: {url: "http://shop/"}}, client: {driver: Jedis}}`, "spec",
		"a library sends Redis commands",
	},
	{"an unknown driver", `{client: {driver: StackExchange}}`, "spec.client.driver", "supported values"},
	{"a library and readFrom", `{client: {driver: Jedis, readFrom: Any}}`, "spec.client", "set options instead of readFrom"},
	{
		"a library and connectionMaxAge", `{client: {driver: Lettuce, connectionMaxAge: 1m}}`, "spec.client",
		"connectionMaxAge belongs to driver Native",
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
	{"go-redis and retries", `{client: {driver: GoRedis, retries: 1}}`, "spec.client", "set options instead of retries"},
	{"addedLatency too long", `{client: {addedLatency: 11s}}`, "spec.client.addedLatency", "must be between 0s and 10s"},
	{
		"connectionMaxAge too short", `{client: {connectionMaxAge: 1ms}}`, "spec.client.connectionMaxAge",
		"must be between 10ms and 24h",
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

// A command that changes its connection is refused by its name, in any spelling; its neighbours, and braces that are
// meant, are not.
func TestConnectionCommandsAreRefused(t *testing.T) {
	names := plan.ConnectionCommands()
	if len(names) < 25 {
		t.Fatalf("%q", names)
	}
	load := func(words []string) *unstructured.Unstructured {
		quoted, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		return object(t, "RedisLoadTest", name(t), fmt.Sprintf(`{workload: {commands: [{name: a, command: %s}]}}`, quoted))
	}
	for _, name := range names {
		words := strings.Fields(strings.ToLower(name) + " x")
		err := strict.Create(t.Context(), load(words), client.DryRunAll)
		expectRefusal(t, err, "spec.workload.commands[0].command", words[0]+" changes the connection")
		expectFileRefused(t, load(words), "spec.workload.commands[0].command", words[0]+" changes the connection")
	}
	for _, words := range [][]string{
		{"CLIENT", "LIST"},
		{"CLIENT"},
		{"PUBLISH", "a", "{value}"},
		{"SET", `\{tag}:{key}`, "{value}"},
		{"SET", "{{key}}:a{{int}}", "{"},
		{"EVAL", "return {KEYS[1], '{1}'}", "1", "{a{user}b}"},
	} {
		if err := strict.Create(t.Context(), load(words), client.DryRunAll); err != nil {
			t.Errorf("%q: %v", words, err)
		}
	}
}

//go:build integration

package admission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// acceptance is a change to the smallest spec that is accepted.
type acceptance struct{ name, change string }

// acceptedExperiments are accepted as experiments, and in the template of a schedule.
var acceptedExperiments = []acceptance{
	{"settings", `{matrix: [` + twoFsyncs + `, ` + someUsers + `], baseline: {appendfsync: never, users: "1"}}`},
	{
		"every setting",
		`{matrix: [{name: a, select: {role: Primary, mode: All}, allow: [TooFewCores], settings: [{name: as-it-is},
		  {name: b+c, config: {save: ""}, ioThreads: {count: 4},
		resources: {cpu: 500m, memory: 1Gi}, replicaScale: {by: -1}, podTemplate: {patch: {spec: {priorityClassName: high}}}}]}]}`,
	},
	{
		"faults as values", `{faults: [` + killFault +
			`, {name: failover, randomDelay: 10s, spec: {action: {type: Failover}}}],
		matrix: [{name: fault, settings: [{name: none, noFaults: true}, {name: kill, faults: [kill]}, {name: both}]}],
		  compare: {figures: [outage, recoveryTime]}}`,
	},
	{
		"fields of a fault", `{faults: [` + killFault +
			`], matrix: [{name: grace, path: faults.kill.action.podKill.gracePeriodSeconds, values: [0, 30]}, {name: lasts,
			  path: faults.kill.duration, values: [10s, "null"]}]}`,
	},
	{"what is not JSON needs no name", `{matrix: [{name: a, path: load.thinkTime, values: [1ms, 10ms]}]}`},
	{
		"lists and objects",
		`{matrix: [{name: test, path: workload.benchmark.tests, values: ['["set"]', '["get"]'], valueNames: [SET, GET]},
		  {name: pods, path: pods.count, values: [1, 2]}]}`,
	},
	{
		"an item of a list",
		`{matrix: [{name: test, path: workload.commands.0.weight, values: [1, 2]}, {name: other, path: workload.commands.1,
		  values: ["null", '{}']}]}`,
	},
	{"names that begin alike", `{matrix: [` + someUsers + `, {name: a, path: load.usersPerPod, values: [1]}]}`},
	{
		"the most cells", `{repeat: 15, matrix: [` + parameters(1, 32) + `, ` + twoFsyncs +
			`, {name: fourth, path: load.rate, values: [1, 2]}]}`,
	},
	{
		"a baseline by the name of its value",
		`{matrix: [{name: a, path: load.users, values: [1, 2], valueNames: [few, many]}], baseline: {a: many}}`,
	},
	{
		"a baseline that is a text",
		`{matrix: [{name: a, path: workload.keyspace.prefix, values: [b, "1"]}], baseline: {a: "1"}}`,
	},
	{
		"all that is compared",
		`{compare: {figures: [throughput, latencyP99], margins: {throughput: "10%", latencyP50: "5.5%"}, baselineRepeats: 4, require: NotWorse}}`,
	},
	{"order and end", `{order: Sequential, stopOnFailure: true, repeat: 50}`},
}

func TestAccepted(t *testing.T) {
	tests := map[string][]acceptance{
		"RedisLoadTest": {
			{"open loop", `{load: {users: null, rate: 2000}}`},
			{"open loop with bounded concurrency", `{load: {users: 100, rate: 2000}}`},
			{
				"stages of users",
				`{load: {users: null, duration: null, stages: [{duration: 1m, users: 10}, {duration: 90s, users: 0}]}}`,
			},
			{"stages of rates", `{load: {users: null, duration: null, stages: [{duration: 1m, rate: 10}]}}`},
			{"requests alone", `{load: {duration: null, requests: 1000000}}`},
			{"requests, bounded", `{load: {requests: 1000000}}`},
			{"think time", `{load: {thinkTime: 100ms}}`},
			{"no think time with rate", `{load: {rate: 1, thinkTime: 0s}}`},
			{"composed duration", `{load: {duration: 1h30m0.5s}}`},
			{
				"addresses",
				`{target: {service: null, addresses: ["redis-0.redis:6379", "[2001:db8::1]:6379", "198.51.100.1:6379"]}}`,
			},
			{"pods alone", `{target: {service: null, podSelector: {matchLabels: {app: redis}}}}`},
			{"service and its pods", `{target: {podSelector: {matchLabels: {app: redis}}}}`},
			{
				"login and TLS",
				`{target: {auth: {username: app, passwordSecretRef: {name: a, key: b.c}}, tls: {caSecretRef: {name: ca}}}}`,
			},
			{
				"sentinels by their Service",
				`{target: {service: null, topology: Sentinel, sentinel: {service: {name: redis-sentinel}, masterName: mymaster}}}`,
			},
			{
				"sentinels by address, found by Auto",
				`{target: {service: null, sentinel: {addresses: ["a:26379"], auth: {passwordSecretRef: {name: a, key: b}}, tls: {}}}}`,
			},
			{"cluster", `{target: {topology: Cluster}}`},
			{
				"go-redis",
				`{client: {driver: GoRedis, options: {PoolSize: 5, MaxRetries: -1, ClusterStateReloadInterval: 1s}}}`,
			},
			{
				"a library in a sidecar",
				`{client: {driver: NodeRedis, image: "registry/own@sha256:00", options: {socket: {connectTimeout: 500}}}}`,
			},
			{"slow network", `{client: {addedLatency: 5ms, mode: Multiplexed, readFrom: Any, retries: 3}}`},
			{"TLS with the system's roots", `{target: {tls: {}}}`},
			{"range of sizes", `{workload: {values: {minBytes: 1, maxBytes: 1}}}`},
			{"tests of redis-benchmark", `{workload: {commands: null, benchmark: {tests: [ping, lrange_600, xadd]}}}`},
			{
				"a search through mixed tests",
				`{load: {users: null, search: {from: 1, to: 9}}, objectives: {maxErrorRate: "1%"}, workload: {commands: null,
				  benchmark: {tests: [set, get], order: Mixed}}}`,
			},
			{"ranking", `{workload: {commands: null, ranking: {members: 10000000, weights: {find: 1}}}}`},
			{
				"locks", `{load: {users: 4, rate: null}, objectives: {maxLockOverlap: 0s}, workload: {commands: null,
				  lock: {locks: 2, ttl: 5s, renewEvery: 1s, waitReplicas: 1, fencing: true}}}`,
			},
			{"rate limiter", `{workload: {commands: null, rateLimiter: {limit: 1, window: 1500ms}}}`},
			{
				"cache aside",
				`{workload: {commands: null, cacheAside: {hitRatio: 92.5%, database: {driver: mysql, dsnSecretRef: {name: a,
				  key: b.c}, query: SELECT 1}}}}`,
			},
			{"HTTP without a Redis", `{target: null, workload: {commands: null, http: {url: "http://shop"}}}`},
			{
				"a database without a Redis",
				`{target: null, workload: {commands: null, cacheAside: {mode: DatabaseOnly, database: {driver: mysql,
				  dsnSecretRef: {name: a, key: b.c}, query: SELECT 1}}}}`,
			},
			{"latency in microseconds, as Go writes it", `{objectives: {maxLatencyP99: 900µs}, client: {addedLatency: 500us}}`},
			{
				"HTTP",
				`{workload: {commands: null, http: {url: "http://shop/{int}", headers: [{name: Accept, value: "*/*"}], keepAlive: false}}}`,
			},
			{"no probe", `{probe: {rate: 0}}`},
			{"no INFO", `{observe: {redisInfo: 0s}}`},
			{
				"observed pods",
				`{observe: {pods: [{name: api, selector: {matchLabels: {app: api}}}, {name: db-0,
				  selector: {matchExpressions: [{key: app, operator: In, values: [a]}]}}]}}`,
			},
			{
				"all objectives",
				`{objectives: {minThroughput: "0.5", maxLatencyP50: 500us, maxLatencyP99: 5ms, maxLatencyP999: 1m30s,
				maxErrorRate: "0%", over: Everything}}`,
			},
			{"an extension", `{load: {untilFaultsSettle: 10m}}`},
			{
				"lost writes",
				`{verify: {acknowledgedWrites: true, share: 0.5%, staleReads: true, dualPrimary: true}, objectives: {maxLostWrites: 0}}`,
			},
			{
				"a search",
				`{load: {users: 500, warmUp: 5s, search: {from: 5, to: 100, precision: 2.5%, trial: 1m, settle: 0s}},
				  objectives: {maxLatencyP999: 1ms}}`,
			},
			{"a search by its defaults", `{load: {users: null, search: {}}, objectives: {maxErrorRate: "1%"}}`},
			{"a ledger alone", `{verify: {acknowledgedWrites: true}}`},
			{"where Redis listens", `{target: {container: redis, podPort: 6380}}`},
			{
				"a pod template",
				`{pods: {imagePullSecrets: [{name: a}], priorityClassName: high, labels: {team: a, example.com/team: ""},
				  jobLabels: {team: a, kueue.x-k8s.io/queue-name: load},
				annotations: {sidecar.istio.io/inject: "false", proxy.istio.io/config: "holdApplicationUntilProxyStarts: true\n",
					sidecar.redquake.dev/ready: "http://localhost:15021/healthz/ready", sidecar.redquake.dev/quit: "http://127.0.0.1:15020/quitquitquit"},
				affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname,
				  labelSelector: {matchLabels: {app: redis}}}]}},
				topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}`,
			},
			{
				"resources and placement",
				`{pods: {resources: {limits: {cpu: 500m}}, nodeSelector: {a: b}, tolerations: [{operator: Exists}]}}`,
			},
		},
		"RedisFault": {
			{"settings of its type", `{action: {podKill: {gracePeriodSeconds: 0}}}`},
			{"crash", `{action: {type: ProcessCrash, processCrash: {method: Segfault}}}`},
			{"separate target", `{loadTestRef: null, target: {service: {name: redis}}}`},
			{
				"all stop conditions",
				`{stopIf: {outage: 100ms, errorRate: "0.5%", lostWrites: 1, queries: [{name: slo,
				  prometheus: {url: "https://[fd00::1]:9090/a/b", authSecretRef: {name: a}, tls: {caSecretRef: {name: b}}},
				    query: "sum(rate(errors[1m]))", above: "-1.5e-3", every: 1s}, {name: up,
				      prometheus: {url: "http://prometheus.monitoring.svc:9090"}, query: up, below: "1", every: 1m}]}}`,
			},
			{"lost writes alone", `{stopIf: {lostWrites: 1000000000000}}`},
			{
				"all objectives",
				`{objectives: {maxTPSDip: "100%", maxOutage: 1us, maxRecoveryTime: 1.5s, maxLostWrites: 0, maxErrors: 0}}`,
			},
			{
				"a probe's pods",
				`{loadTestRef: null, target: {service: {name: redis}}, probePods: {tolerations: [{operator: Exists}],
				  resources: {limits: {cpu: 500m}}}}`,
			},
			{"both", `{target: {podSelector: {matchLabels: {app: redis}}}}`},
			{
				"a template",
				`{setting: true, action: {type: PodTemplate, podTemplate: {patch: {metadata: {annotations: {a/b: c, d: null}},
				  spec: {priorityClassName: null, containers: [{name: redis, env: [{name: A, value: b}]}, {name: old, $patch: delete}]}}}}}`,
			},
			{"killed until it is over", `{duration: 1h}`},
			{"the shortest hang", `{duration: 100ms, action: {type: Hang}}`},
			{"the longest hang", `{duration: 10m, action: {type: Hang}}`},
			{"the longest hold of a volume", `{duration: 1h, action: {type: VolumeAttachDelay}}`},
			{"the longest of the others", `{duration: 24h, action: {type: ClientPause}}`},
			{"a dry run", `{dryRun: true}`},
			{"a setting", `{setting: true, action: {type: Config, config: {parameters: {hz: "20"}}}}`},
			{
				"a setting with all that it can have",
				`{setting: true, dryRun: true, duration: 24h, target: {service: {name: redis}}, stopIf: {queries: [{name: up,
				  prometheus: {url: "http://p"}, query: up, below: "1"}]}, action: {type: ReplicaScale, replicaScale: {by: 1}}}`,
			},
			{
				"a setting by Chaos Mesh",
				`{setting: true, engine: ChaosMesh, action: {type: NetworkLoss, networkLoss: {loss: "1%", peers: [Servers]}}}`,
			},
			{"external", `{action: {type: External}}`},
			{"the longest wait for a mark", `{action: {type: External, external: {waitFor: 24h}}}`},
			{"by Chaos Mesh", `{engine: ChaosMesh, duration: 20s, action: {type: CPUStress}}`},
			{"count", `{select: {mode: Count, count: 2}}`},
			{"percent", `{select: {mode: Percent, percent: 100}}`},
			{"names", `{select: {names: [redis-0, redis-1], mode: All}}`},
			{"zone", `{select: {zone: eu-west-1a, role: Primary}}`},
			{"at random", `{select: {pick: Random, mode: Count, count: 2}}`},
			{"early expiry", `{engine: ChaosMesh, action: {type: ClockSkew, clockSkew: {offset: 1h}}, allow: [Expiry]}`},
			{"steady", `{trigger: {steadyFor: 2s}}`},
			{"at once", `{trigger: {after: 0s}}`},
			{
				"cut off from its operator",
				`{action: {type: NetworkPartition, networkPartition: {peers: [Operator, Sentinels], operator: {deployment: a}}}}`,
			},
			{"beside four others", `{beside: [a, b, c, d], trigger: {afterBeside: 1h}}`},
			{"beside one, once it is steady", `{beside: [a], trigger: {steadyFor: 10s}}`},
		},
		"RedisExperiment": append([]acceptance{
			{"an earlier run", `{compareTo: {run: before}, objectives: {noRegression: true}}`},
			{"the end", `{ttlSecondsAfterFinished: 0}`},
		}, acceptedExperiments...),
		"RedisExperimentSchedule": {
			{
				"all that it can have",
				`{schedule: "*/5  0-3 1,15 * MON-FRI", timeZone: Europe/Berlin, startingDeadlineSeconds: 60,
				  concurrencyPolicy: Replace, compareTo: {run: last, confirm: true},
				successfulRunsHistoryLimit: 0, failedRunsHistoryLimit: 100, suspend: true,
				  template: {spec: {objectives: {noRegression: true}, loadTestsHistoryLimit: 0}}}`,
			},
			{"notifications", `{notify: {urlSecretRef: {name: chat, key: url}, template: "{{.Text}}"}}`},
			{"by its name", `{schedule: "@weekly"}`},
			{"by its period", `{schedule: "@every 1h30m"}`},
			{"a named run", `{compareTo: {run: before}}`},
			{"objectives without noRegression", inSchedule(`{objectives: {noRegression: false}}`)},
		},
	}
	for _, c := range acceptedExperiments {
		tests["RedisExperimentSchedule"] = append(tests["RedisExperimentSchedule"], acceptance{c.name, inSchedule(c.change)})
	}
	for kind, cases := range tests {
		t.Run(kind, func(t *testing.T) {
			for _, test := range cases {
				t.Run(test.name, func(t *testing.T) {
					sent := object(t, kind, name(t), test.change)
					stored := sent.DeepCopy()
					if err := strict.Create(t.Context(), stored, client.DryRunAll); err != nil {
						t.Fatal(err)
					}
					expectSameDefaults(t, sent, stored)
				})
			}
		})
	}
}

// loadTestDefaults is the stored spec of the smallest load test.
const loadTestDefaults = `
target: {topology: Auto, service: {name: redis, port: 6379}, database: 0}
client: {pipeline: 1, dialTimeout: 1s, protocol: RESP3, readFrom: Primary, mode: Dedicated, driver: Native, retries: 0}
load: {users: 1, duration: 10s}
workload:
  commands: [{name: get, weight: 1, command: [GET, "{key}"]}]
  keyspace: {prefix: "rq:", keys: 100000, distribution: Uniform, scattered: false, prefill: false}
  values: {}
pods: {count: 1, lost: Fail, startDeadline: 5m}
probe: {rate: 100, operation: Auto}
observe: {interval: 100ms, redisInfo: 1s}
abort: false
suspend: false
`

// experimentDefaults is that of the smallest experiment.
var experimentDefaults = `
template:
  spec:` + strings.NewReplacer("\n", "\n    ", "users: 1, ", "").Replace(loadTestDefaults) + `
matrix: [{name: users, path: load.users, values: [1, 2]}]
repeat: 6
order: Shuffled
compare: {require: None}
stopOnFailure: false
loadTestsHistoryLimit: 50
abort: false
suspend: false
`

// scheduleDefaults is that of the smallest schedule.
var scheduleDefaults = `
template:
  spec:` + strings.ReplaceAll(experimentDefaults, "\n", "\n    ") + `
schedule: "@daily"
concurrencyPolicy: Forbid
successfulRunsHistoryLimit: 3
failedRunsHistoryLimit: 1
suspend: false
`

// The API server writes defaults into the object, so that `kubectl get -o yaml` shows what was run.
func TestDefaults(t *testing.T) {
	tests := []struct{ name, kind, change, want string }{
		{"smallest load test", "RedisLoadTest", `{}`, loadTestDefaults},
		{
			"a switched-off probe stays off", "RedisLoadTest",
			`{probe: {rate: 0}, observe: {redisInfo: 0s}, client: {pipeline: 8}}`,
			strings.NewReplacer("rate: 100,", "rate: 0,", "redisInfo: 1s", "redisInfo: 0s", "pipeline: 1",
				"pipeline: 8").Replace(loadTestDefaults),
		},
		{"smallest fault", "RedisFault", `{}`, `
loadTestRef: {name: checkout-cache}
select: {role: Any, mode: One, pick: First}
trigger: {timeout: 5m}
recoveryDeadline: 2m
engine: Native
action: {type: PodKill}
abort: false
dryRun: false
setting: false
suspend: false
`},
		{"smallest experiment", "RedisExperiment", `{}`, experimentDefaults},
		{"smallest schedule", "RedisExperimentSchedule", `{}`, scheduleDefaults},
		{
			"a schedule with an earlier run", "RedisExperimentSchedule", `{compareTo: {run: last}}`,
			scheduleDefaults + "compareTo: {run: last, confirm: false}\n",
		},
		{
			"crash with a target", "RedisFault",
			`{loadTestRef: null, target: {service: {name: redis}, tls: {}}, action: {type: ProcessCrash, processCrash: {}}}`, `
target: {topology: Auto, service: {name: redis, port: 6379}, tls: {insecureSkipVerify: false}, database: 0}
select: {role: Any, mode: One, pick: First}
trigger: {timeout: 5m}
recoveryDeadline: 2m
engine: Native
action: {type: ProcessCrash, processCrash: {method: Shutdown}}
abort: false
dryRun: false
setting: false
suspend: false
`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := created(t, object(t, test.kind, name(t), test.change))
			// Both sides through the same decoder: numbers compare as numbers.
			got := parse(t, text(t, o.Object["spec"]))
			if diff := cmp.Diff(parse(t, test.want), got); diff != "" {
				t.Errorf("spec as stored (-want +got):\n%s", diff)
			}
			generation, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			if err != nil || !found || generation != -1 {
				t.Errorf("status.observedGeneration is %d, %t, %v; want -1: it was not reconciled yet", generation, found, err)
			}
		})
	}
}

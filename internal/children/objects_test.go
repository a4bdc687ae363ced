package children

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
)

// parent is the metadata of a parent that a GitOps tool keeps: none of its labels and annotations may reach a child.
func parent(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Namespace:   "shop",
		UID:         types.UID("7c0a4e5e-2d29-4f54-9f0c-1f4e5b0c7a11"),
		Labels:      map[string]string{"app.kubernetes.io/instance": "argo-app"},
		Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "argo-app:redquake.dev/RedisLoadTest:shop/x"},
	}
}

// loadTest makes a RedisLoadTest of a spec in YAML, as the API server would store it.
func loadTest(t *testing.T, spec string) *v1alpha1.RedisLoadTest {
	t.Helper()
	test := &v1alpha1.RedisLoadTest{ObjectMeta: parent("checkout-cache")}
	if err := yaml.UnmarshalStrict([]byte(spec), &test.Spec); err != nil {
		t.Fatal(err)
	}
	admit(t, test)
	return test
}

// admit applies defaults and validation as the API server does.
func admit(t *testing.T, object manifest.Object) {
	t.Helper()
	if err := manifest.Admit(object); err != nil {
		t.Fatal(err)
	}
}

// smallest is a spec with only the required fields.
const smallest = `
target: {service: {name: redis}}
load: {users: 10, duration: 30s}
workload: {commands: [{name: get, command: [GET, "{key}"]}]}
`

// fullest is a spec with all fields that a closed-loop test can have.
const fullest = `
target:
  topology: Standalone
  service: {name: redis, port: 6380}
  auth: {username: app, passwordSecretRef: {name: redis-auth, key: redis-password}}
  tls: {caSecretRef: {name: redis-ca}, certSecretRef: {name: redis-client}, serverName: redis.shop, insecureSkipVerify: true}
  database: 3
client: {connections: 7, pipeline: 4, dialTimeout: 500ms, requestTimeout: 250ms, protocol: RESP2}
load: {users: 100, thinkTime: 5ms, rampUp: 10s, warmUp: 20s, duration: 3m, requests: 1000000}
workload:
  commands:
  - {name: set, weight: 1, command: [SET, "{key}", "{value}"]}
  - {name: get, weight: 9, command: [GET, "{key}"]}
  keyspace: {prefix: "shop:", keys: 5000, distribution: Zipf, prefill: true, ttl: 1h}
  values: {minBytes: 16, maxBytes: 1024}
pods:
  count: 3
  lost: Continue
  startDeadline: 1m
  image: registry.example/redquake:v2
  resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "2", memory: 1Gi}}
  nodeSelector: {pool: load}
  tolerations: [{key: load, operator: Exists, effect: NoSchedule}]
  imagePullSecrets: [{name: registry}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname,
    labelSelector: {matchLabels: {app: redis}}}]}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}]
  priorityClassName: high
  labels: {team: checkout}
  jobLabels: {team: platform, kueue.x-k8s.io/queue-name: load}
  annotations: {sidecar.istio.io/inject: "true", sidecar.redquake.dev/ready: "http://localhost:15021/healthz/ready",
    sidecar.redquake.dev/quit: "http://localhost:15020/quitquitquit"}
probe: {rate: 50}
observe: {interval: 200ms, redisInfo: 5s}
`

package owner_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/owner"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// resource is a custom resource of an operator.
func resource(
	apiVersion, kind, name string, spec map[string]any, annotations map[string]any,
) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "spec": spec,
		"metadata": map[string]any{"namespace": faulttest.Namespace, "name": name, "annotations": annotations},
	}}
}

func ownedBy(o *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: "x", Controller: new(true)},
	}
}

// owned is a world in which a pod belongs to a StatefulSet, and that to the first of some resources; each of these
// belongs to the next.
func owned(t *testing.T, resources ...*unstructured.Unstructured) (*faulttest.World, *corev1.Pod) {
	t.Helper()
	w := faulttest.NewWorld(t)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"}}
	if len(resources) > 0 {
		set.OwnerReferences = ownedBy(resources[0])
	}
	objects := []client.Object{set}
	for i, r := range resources {
		if i+1 < len(resources) {
			r.SetOwnerReferences(ownedBy(resources[i+1]))
		}
		objects = append(objects, r)
	}
	for _, o := range objects {
		if err := w.Cluster.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return w, w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
}

var (
	dynamic = map[string]any{"redisConfig": map[string]any{"dynamicConfig": []any{"hz 100", "Slowlog-Max-Len 64"}}}
	custom  = map[string]any{"redis": map[string]any{"customConfig": []any{"hz 100"}}}
	live    = map[string]any{"config": map[string]any{"maxclients": "500", "hz": "100"}}
)

func TestWhatOperatorsRestore(t *testing.T) {
	const opstree, spotahome, valkey = "redis.redis.opstreelabs.in/v1beta2", "databases.spotahome.com/v1",
		"valkey.io/v1alpha1"
	for name, tc := range map[string]struct {
		resources []*unstructured.Unstructured
		sets      map[string]string // fields by setting
		paused    string
		replicas  string
	}{
		"a setting of dynamicConfig": {
			[]*unstructured.Unstructured{resource(opstree, "RedisReplication", "shop", dynamic, nil)},
			map[string]string{
				"hz":              "spec.redisConfig.dynamicConfig",
				"slowlog-max-len": "spec.redisConfig.dynamicConfig",
				"timeout":         "",
			},
			"",
			"set spec.clusterSize there, or pause its operator by the annotation redisreplication.opstreelabs.in/skip-reconcile=true on it",
		},
		"an operator that is paused": {
			[]*unstructured.Unstructured{
				resource(opstree, "RedisCluster", "shop", dynamic, map[string]any{
					"rediscluster.opstreelabs.in/skip-reconcile": "true",
				}),
			},
			map[string]string{"hz": "spec.redisConfig.dynamicConfig"},
			"rediscluster.opstreelabs.in/skip-reconcile=true",
			"set spec.redisFollower.replicas there, or pause its operator by the annotation rediscluster.opstreelabs.in/skip-reconcile=true on it",
		},
		"a setting of customConfig": {
			[]*unstructured.Unstructured{resource(spotahome, "RedisFailover", "shop", custom, nil)},
			map[string]string{"hz": "spec.redis.customConfig", "maxclients": ""},
			"", "set spec.redis.replicas there",
		},
		"a resource above the owner": {
			[]*unstructured.Unstructured{
				resource(valkey, "ValkeyNode", "shop-0", nil, nil),
				resource(valkey, "ValkeyCluster", "shop", live, nil),
			},
			map[string]string{"maxclients": "spec.config", "hz": ""},
			"", "set spec.replicas there",
		},
		"an unknown operator": {
			[]*unstructured.Unstructured{resource("example.com/v1", "Cache", "shop", custom, nil)},
			map[string]string{"hz": ""},
			"", "change it there",
		},
		"malformed settings": {
			[]*unstructured.Unstructured{
				resource(spotahome, "RedisFailover", "shop",
					map[string]any{"redis": map[string]any{"customConfig": []any{"", int64(1)}}}, nil),
			},
			map[string]string{"hz": ""},
			"", "set spec.redis.replicas there",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, pod := owned(t, tc.resources...)
			above, err := owner.Of(t.Context(), w.Cluster, pod)
			if err != nil || above == nil {
				t.Fatalf("%v %v", above, err)
			}
			last := tc.resources[len(tc.resources)-1]
			if want := last.GetKind() + " shop (" + last.GetAPIVersion() + ")"; above.String() != want {
				t.Errorf("%s, want %s", above, want)
			}
			for setting, want := range tc.sets {
				if got := above.Sets(setting); got != want {
					t.Errorf("%s: %q, want %q", setting, got, want)
				}
			}
			if above.Paused() != tc.paused || above.Replicas() != tc.replicas {
				t.Errorf("paused %q, %q; want %q, %q", above.Paused(), above.Replicas(), tc.paused, tc.replicas)
			}
		})
	}
}

// Without an operator above it, a workload belongs to nobody; a resource that cannot be read is known by its name.
func TestOwnersThatAreNone(t *testing.T) {
	w, pod := owned(t)
	if above, err := owner.Of(t.Context(), w.Cluster, pod); above != nil || err != nil {
		t.Errorf("%v %v", above, err)
	}
	w = faulttest.NewWorld(t) // without the StatefulSet
	if above, err := owner.Of(t.Context(), w.Cluster,
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)); above != nil || err != nil {
		t.Errorf("%v %v", above, err)
	}
	gone := resource("databases.spotahome.com/v1", "RedisFailover", "shop", custom, nil)
	w = faulttest.NewWorld(t)
	pod = w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) { p.OwnerReferences = ownedBy(gone) })
	above, err := owner.Of(t.Context(), w.Cluster, pod)
	if err != nil || above == nil || above.Sets("hz") != "" || above.Paused() != "" ||
		above.Startup() != "set spec.redis.command there" {
		t.Errorf("%v %v", above, err)
	}
}

// A Config of a setting that an operator restores is refused before a server is queried; while the operator is paused,
// it is not.
func TestConfigThatAnOperatorRestores(t *testing.T) {
	spec := &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:   v1alpha1.FaultConfig,
			Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50", "timeout": "9"}},
		},
	}
	preflight := func(annotations map[string]any) error {
		w, _ := owned(t, resource("redis.redis.opstreelabs.in/v1beta2", "Redis", "shop", dynamic, annotations))
		injector, err := fault.For(spec, w.Deps())
		if err != nil {
			t.Fatal(err)
		}
		return injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", Address: "10.0.0.1:6379"})
	}
	refused := faulttest.ProblemOf(t, preflight(nil))
	for _, part := range []string{
		"spec.action.config.parameters.hz: Redis shop (redis.redis.opstreelabs.in/v1beta2) has it in " +
			"spec.redisConfig.dynamicConfig", "redis.opstreelabs.in/skip-reconcile=true",
	} {
		if refused.Reason != v1alpha1.ReasonNotSupported || !refused.Lasting || !strings.Contains(refused.Message, part) {
			t.Errorf("%+v, want %q", refused, part)
		}
	}
	if err := preflight(map[string]any{"redis.opstreelabs.in/skip-reconcile": "true"}); err != nil &&
		strings.Contains(err.Error(), "dynamicConfig") {
		t.Errorf("refused although the operator is paused: %v", err)
	}
}

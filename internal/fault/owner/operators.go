package owner

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// operator is what an operator restores, by the API group of its custom resources.
type operator struct {
	// the field with settings of the server that it applies by CONFIG SET, again and again
	settings string
	only     []string // of these settings, those that it applies; nil = all
	startup  string   // the field for settings that are read at the start of a server
	// the field for the number of servers, by the kind of the resource
	replicas map[string]string
	// the annotation that pauses it for a resource; nil = there is none
	pause func(kind string) string
}

// operators are those that are known, by API group. Their sources: OT-CONTAINER-KIT/redis-operator
// v0.26 (internal/controller/common/skip_reconcile.go, api/common/v1beta2/common_types.go),
// spotahome/redis-operator v1.3 (operator/redisfailover/checker.go, api/redisfailover/v1/types.go),
// valkey-io/valkey-operator v0.5 (api/v1alpha1/valkeycluster_types.go, liveConfigAllowlist in
// internal/controller/config.go).
var operators = map[string]*operator{
	"redis.redis.opstreelabs.in": {
		settings: "spec.redisConfig.dynamicConfig",
		startup:  "spec.redisConfig.additionalRedisConfig",
		replicas: map[string]string{
			"RedisReplication": "spec.clusterSize",
			"RedisCluster":     "spec.redisFollower.replicas",
		},
		pause: func(kind string) string {
			return strings.ToLower(kind) +
				".opstreelabs.in/skip-reconcile"
		},
	},
	"databases.spotahome.com": {
		settings: "spec.redis.customConfig",
		startup:  "spec.redis.command",
		replicas: map[string]string{"RedisFailover": "spec.redis.replicas"},
	},
	"valkey.io": {
		settings: "spec.config",
		only:     []string{"maxmemory", "maxmemory-policy", "maxclients"},
		startup:  "spec.config",
		replicas: map[string]string{"ValkeyCluster": "spec.replicas"},
	},
}

func operatorOf(reference *metav1.OwnerReference) *operator {
	group, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil {
		return nil
	}
	return operators[group.Group]
}

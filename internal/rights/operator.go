package rights

import (
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Grant is what the operator may do with a resource.
type Grant struct {
	Group    string // "" = the core group
	Resource string
	Cluster  bool // the resource is cluster-scoped
	Verbs    []string

	unless func(*v1alpha1.Action) bool // the settings with which it is not needed; nil = always needed
}

// Operation is what the operator must be allowed for a kind of fault by one engine, its revert included: in addition to what it needs for every object, which
// markers in the controllers say (config/rbac/role.yaml).
type Operation struct {
	Type   v1alpha1.FaultType
	Engine v1alpha1.Engine
	Grants []Grant
}

// The grants that several kinds need.
var (
	deletesPods         = Grant{Resource: "pods", Verbs: []string{"delete"}}
	patchesStatefulSets = Grant{Group: "apps", Resource: "statefulsets", Verbs: []string{"patch"}}
	taintsNodes         = Grant{Resource: "nodes", Cluster: true, Verbs: []string{"get", "list", "patch"}} // list: whether another node can run the replacement, and which nodes lost faults have left tainted
)

// The settings with which a kind needs less.
func isLive(a *v1alpha1.Action) bool {
	return a.IOThreads != nil && a.IOThreads.Method == v1alpha1.ApplyLive
}

func taintsNothing(a *v1alpha1.Action) bool {
	return a.VolumeAttachDelay != nil && a.VolumeAttachDelay.KeepAway == v1alpha1.KeepAwayNone
}

func (g Grant) exceptIf(unless func(*v1alpha1.Action) bool) Grant {
	g.unless = unless
	return g
}

// Operations are all kinds. Those without grants send commands to Redis, or do nothing.
var Operations = []Operation{
	operation(v1alpha1.FaultPodKill, deletesPods),
	operation(v1alpha1.FaultProcessCrash),
	operation(v1alpha1.FaultFailover),
	operation(v1alpha1.FaultVolumeAttachDelay,
		Grant{Resource: "pods", Verbs: []string{"create", "delete"}}, Grant{Resource: "persistentvolumeclaims", Verbs: []string{"get"}},
		taintsNodes.exceptIf(taintsNothing), Grant{Resource: "persistentvolumes", Cluster: true, Verbs: []string{"get"}},
		Grant{Group: "storage.k8s.io", Resource: "volumeattachments", Cluster: true, Verbs: []string{"get", "list"}}),
	operation(v1alpha1.FaultIOThreads, patchesStatefulSets.exceptIf(isLive), deletesPods.exceptIf(isLive)),
	operation(v1alpha1.FaultConfig),
	operation(v1alpha1.FaultReplicaScale, patchesStatefulSets, Grant{Group: "autoscaling", Resource: "horizontalpodautoscalers", Verbs: []string{"list"}}),
	operation(v1alpha1.FaultResources, Grant{Resource: "pods/resize", Verbs: []string{"patch"}}),
	operation(v1alpha1.FaultPodTemplate, patchesStatefulSets, deletesPods),
	operation(v1alpha1.FaultHang),
	operation(v1alpha1.FaultClientPause),
	operation(v1alpha1.FaultClientKill),
	operation(v1alpha1.FaultBackgroundSave),
	operation(v1alpha1.FaultNodeLoss, deletesPods, taintsNodes),
	operation(v1alpha1.FaultExternal),
	meshOperation(v1alpha1.FaultPodKill, "podchaos"),
	meshOperation(v1alpha1.FaultNetworkDelay, "networkchaos"),
	meshOperation(v1alpha1.FaultNetworkLoss, "networkchaos"),
	meshOperation(v1alpha1.FaultNetworkPartition, "networkchaos"),
	meshOperation(v1alpha1.FaultDiskDelay, "iochaos"),
	meshOperation(v1alpha1.FaultCPUStress, "stresschaos"),
	meshOperation(v1alpha1.FaultClockSkew, "timechaos"),
}

func operation(typ v1alpha1.FaultType, grants ...Grant) Operation {
	return Operation{Type: typ, Engine: v1alpha1.EngineNative, Grants: grants}
}

func meshOperation(typ v1alpha1.FaultType, resource string) Operation {
	return Operation{Type: typ, Engine: v1alpha1.EngineChaosMesh, Grants: []Grant{
		{Group: "chaos-mesh.org", Resource: resource, Verbs: []string{"get", "list", "create", "delete"}},
	}}
}

// OperationOf is what the operator must be allowed for a fault; none for a kind that is not known.
func OperationOf(spec *v1alpha1.RedisFaultSpec) Operation {
	engine := spec.Engine
	if engine == "" {
		engine = v1alpha1.EngineNative
	}
	for _, o := range Operations {
		if o.Type == spec.Action.Type && o.Engine == engine {
			return o
		}
	}
	return Operation{Type: spec.Action.Type, Engine: engine}
}

// Needs are the rights that a fault with these settings needs.
func (o Operation) Needs(action *v1alpha1.Action) []Right {
	var all []Right
	for _, g := range o.Grants {
		if g.unless != nil && g.unless(action) {
			continue
		}
		for _, verb := range g.Verbs {
			all = append(all, Right{Verb: verb, Group: g.Group, Resource: g.Resource, Cluster: g.Cluster})
		}
	}
	return all
}

// Name is the kind as the names of its roles and files contain it, such as podkill or podkill-chaosmesh.
func (o Operation) Name() string {
	name := strings.ToLower(string(o.Type))
	for _, other := range Operations {
		if other.Type == o.Type && other.Engine != o.Engine && o.Engine != v1alpha1.EngineNative {
			return name + "-" + strings.ToLower(string(o.Engine))
		}
	}
	return name
}

// On are the grants on cluster-scoped resources, or those on the resources of a namespace.
func (o Operation) On(cluster bool) []Grant {
	var some []Grant
	for _, g := range o.Grants {
		if g.Cluster == cluster {
			some = append(some, g)
		}
	}
	return some
}

// Role is the name of the role with a kind's rights on the resources of a namespace, or on cluster-scoped resources, without the installation's prefix.
func (o Operation) Role(cluster bool) string {
	if cluster {
		return "cluster-" + o.Name() + "-role"
	}
	return "manager-" + o.Name() + "-role"
}

// Prefix is what the installation puts before the names of its cluster-scoped objects and of its roles.
const Prefix = "redquake-"

// Operator is the operator as the user of a request: its ServiceAccount.
const Operator = "system:serviceaccount:" + Prefix + "system:" + Prefix + "controller-manager"

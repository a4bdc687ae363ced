package rights

import "github.com/redquake/redquake/api/v1alpha1"

// The rights that several kinds need.
var (
	deletePods        = Need{Right: Right{Verb: "delete", Resource: "pods"}}
	createPods        = Need{Right: Right{Verb: "create", Resource: "pods"}}
	patchStatefulSets = Need{Right: Right{Verb: "patch", Group: "apps", Resource: "statefulsets"}}
	patchNodes        = Need{Right: Right{Verb: "patch", Resource: "nodes", Cluster: true}}

	// Whoever may run a command in a pod of Redis may send Redis any command: the closest to what a fault by commands does.
	execPods = Need{Right: Right{Verb: "create", Resource: "pods/exec"}}
)

// The settings with which a kind needs less.
var (
	live = &Exception{
		Holds: func(s *v1alpha1.RedisFaultSpec) bool {
			return s.Action.IOThreads != nil && s.Action.IOThreads.Method == v1alpha1.ApplyLive
		},
		Else: "object.spec.action.?ioThreads.?method.orValue('Auto') != 'Live'",
	}
	noCordon = &Exception{
		Holds: func(s *v1alpha1.RedisFaultSpec) bool {
			return s.Action.VolumeAttachDelay != nil && s.Action.VolumeAttachDelay.KeepAway == v1alpha1.KeepAwayNone
		},
		Else: "object.spec.action.?volumeAttachDelay.?keepAway.orValue('Cordon') != 'None'",
	}
)

func (n Need) unless(e *Exception) Need {
	n.Unless = e
	return n
}

// Faults are all kinds.
var Faults = []Fault{
	native(v1alpha1.FaultPodKill, []Need{deletePods}, deletePods),
	native(v1alpha1.FaultProcessCrash, []Need{execPods}),
	native(v1alpha1.FaultFailover, []Need{execPods}),
	native(v1alpha1.FaultVolumeAttachDelay, []Need{deletePods, createPods, patchNodes.unless(noCordon)},
		deletePods, createPods, patchNodes.unless(noCordon),
		Need{Right: Right{Verb: "get", Resource: "persistentvolumeclaims"}},
		Need{Right: Right{Verb: "get", Resource: "persistentvolumes", Cluster: true}},
		Need{Right: Right{Verb: "list", Group: "storage.k8s.io", Resource: "volumeattachments", Cluster: true}}),
	native(v1alpha1.FaultIOThreads, []Need{execPods, patchStatefulSets.unless(live), deletePods.unless(live)},
		patchStatefulSets.unless(live), deletePods.unless(live)),
	native(v1alpha1.FaultConfig, []Need{execPods}),
	native(v1alpha1.FaultReplicaScale, []Need{execPods, patchStatefulSets},
		patchStatefulSets, Need{Right: Right{Verb: "list", Group: "autoscaling", Resource: "horizontalpodautoscalers"}}),
	// The cluster's edit does not include pods/resize, but may change the resources in the workload.
	native(v1alpha1.FaultResources, []Need{{Right: Right{Verb: "patch", Resource: "pods/resize"}, Or: &patchStatefulSets.Right}},
		Need{Right: Right{Verb: "patch", Resource: "pods/resize"}}),
	native(v1alpha1.FaultHang, []Need{execPods}),
	native(v1alpha1.FaultClientPause, []Need{execPods}),
	native(v1alpha1.FaultClientKill, []Need{execPods}),
	native(v1alpha1.FaultBackgroundSave, []Need{execPods}),
	native(v1alpha1.FaultNodeLoss, []Need{deletePods, patchNodes}, deletePods, patchNodes),
	byChaosMesh(v1alpha1.FaultPodKill, "podchaos"),
	byChaosMesh(v1alpha1.FaultNetworkDelay, "networkchaos"),
	byChaosMesh(v1alpha1.FaultNetworkLoss, "networkchaos"),
	byChaosMesh(v1alpha1.FaultNetworkPartition, "networkchaos"),
	byChaosMesh(v1alpha1.FaultDiskDelay, "iochaos"),
	byChaosMesh(v1alpha1.FaultCPUStress, "stresschaos"),
	byChaosMesh(v1alpha1.FaultClockSkew, "timechaos"),
}

func native(typ v1alpha1.FaultType, user []Need, operator ...Need) Fault {
	return Fault{Type: typ, Engine: v1alpha1.EngineNative, User: user, Operator: operator}
}

// byChaosMesh is a fault that consists of one of Chaos Mesh's objects.
func byChaosMesh(typ v1alpha1.FaultType, resource string) Fault {
	on := func(verb string) Need {
		return Need{Right: Right{Verb: verb, Group: "chaos-mesh.org", Resource: resource}}
	}
	return Fault{Type: typ, Engine: v1alpha1.EngineChaosMesh, User: []Need{on("create")}, Operator: []Need{on("create"), on("delete"), on("get"), on("list")}}
}

// RunJobs is what whoever creates a load must be allowed, which runs as a Job with an image of the user's choice.
var RunJobs = Right{Verb: "create", Group: "batch", Resource: "jobs"}

// Secrets are the fields, below spec, with the name of a Secret that the operator or a load pod reads for the user, by resource.
var Secrets = map[string][]string{
	"redisfaults": ofTarget,
	"redisloadtests": append([]string{
		"workload.cacheAside.database.dsnSecretRef",
	}, ofTarget...),
}

var ofTarget = []string{
	"target.auth.passwordSecretRef", "target.tls.caSecretRef", "target.tls.certSecretRef",
	"target.sentinel.auth.passwordSecretRef", "target.sentinel.tls.caSecretRef", "target.sentinel.tls.certSecretRef",
}

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
const (
	live     = "object.spec.action.?ioThreads.?method.orValue('Auto') == 'Live'"
	noCordon = "object.spec.action.?volumeAttachDelay.?keepAway.orValue('Cordon') == 'None'"
)

func (n Need) unless(setting string) Need {
	n.Unless = setting
	return n
}

// Faults are all kinds.
var Faults = []Fault{
	native(v1alpha1.FaultPodKill, deletePods),
	native(v1alpha1.FaultProcessCrash, execPods),
	native(v1alpha1.FaultFailover, execPods),
	native(v1alpha1.FaultVolumeAttachDelay, deletePods, createPods, patchNodes.unless(noCordon)),
	native(v1alpha1.FaultIOThreads, execPods, patchStatefulSets.unless(live), deletePods.unless(live)),
	native(v1alpha1.FaultConfig, execPods),
	native(v1alpha1.FaultReplicaScale, execPods, patchStatefulSets),
	// The cluster's edit does not include pods/resize, but may change the resources in the workload.
	native(v1alpha1.FaultResources, Need{Right: Right{Verb: "patch", Resource: "pods/resize"}, Or: &patchStatefulSets.Right}),
	native(v1alpha1.FaultHang, execPods),
	native(v1alpha1.FaultClientPause, execPods),
	native(v1alpha1.FaultClientKill, execPods),
	native(v1alpha1.FaultBackgroundSave, execPods),
	native(v1alpha1.FaultNodeLoss, deletePods, patchNodes),
	native(v1alpha1.FaultExternal), // it does nothing
	byChaosMesh(v1alpha1.FaultPodKill, "podchaos"),
	byChaosMesh(v1alpha1.FaultNetworkDelay, "networkchaos"),
	byChaosMesh(v1alpha1.FaultNetworkLoss, "networkchaos"),
	byChaosMesh(v1alpha1.FaultNetworkPartition, "networkchaos"),
	byChaosMesh(v1alpha1.FaultDiskDelay, "iochaos"),
	byChaosMesh(v1alpha1.FaultCPUStress, "stresschaos"),
	byChaosMesh(v1alpha1.FaultClockSkew, "timechaos"),
}

func native(typ v1alpha1.FaultType, needs ...Need) Fault {
	return Fault{Type: typ, Engine: v1alpha1.EngineNative, Needs: needs}
}

// byChaosMesh is a fault that consists of one of Chaos Mesh's objects.
func byChaosMesh(typ v1alpha1.FaultType, resource string) Fault {
	return Fault{Type: typ, Engine: v1alpha1.EngineChaosMesh, Needs: []Need{{Right: Right{Verb: "create", Group: "chaos-mesh.org", Resource: resource}}}}
}

// RunJobs is what whoever creates a load must be allowed, which runs as a Job with an image of the user's choice.
var RunJobs = Right{Verb: "create", Group: "batch", Resource: "jobs"}

// Secrets are the fields, below spec, with the name of a Secret that the operator or a load pod reads for the user, by resource. [] follows a list.
var Secrets = map[string][]string{
	"redisfaults": append([]string{
		"stopIf.queries[].prometheus.authSecretRef", "stopIf.queries[].prometheus.tls.caSecretRef", "stopIf.queries[].prometheus.tls.certSecretRef",
	}, ofTarget...),
	"redisloadtests": append([]string{
		"workload.cacheAside.database.dsnSecretRef",
	}, ofTarget...),
}

// MostItems is how many items a list with references to Secrets can have: the API server's budget of an admission policy suffices for some 28 checks.
const MostItems = 4

var ofTarget = []string{
	"target.auth.passwordSecretRef", "target.tls.caSecretRef", "target.tls.certSecretRef",
	"target.sentinel.auth.passwordSecretRef", "target.sentinel.tls.caSecretRef", "target.sentinel.tls.certSecretRef",
}

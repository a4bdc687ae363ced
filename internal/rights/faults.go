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
	live    = Setting{Field: []string{"ioThreads", "method"}, Default: string(v1alpha1.ApplyAuto), Value: string(v1alpha1.ApplyLive)}
	noTaint = Setting{Field: []string{"volumeAttachDelay", "keepAway"}, Default: string(v1alpha1.KeepAwayTaint), Value: string(v1alpha1.KeepAwayNone)}
)

func (n Need) unless(setting Setting) Need {
	n.Unless = &setting
	return n
}

// Faults are all kinds.
var Faults = []Fault{
	native(v1alpha1.FaultPodKill, deletePods),
	native(v1alpha1.FaultProcessCrash, execPods),
	native(v1alpha1.FaultFailover, execPods),
	native(v1alpha1.FaultVolumeAttachDelay, deletePods, createPods, patchNodes.unless(noTaint)),
	native(v1alpha1.FaultIOThreads, execPods, patchStatefulSets.unless(live), deletePods.unless(live)),
	native(v1alpha1.FaultConfig, execPods),
	native(v1alpha1.FaultReplicaScale, execPods, patchStatefulSets),
	// The cluster's edit does not include pods/resize, but may change the resources in the workload.
	native(v1alpha1.FaultResources, Need{Right: Right{Verb: "patch", Resource: "pods/resize"}, Or: &patchStatefulSets.Right}),
	native(v1alpha1.FaultPodTemplate, patchStatefulSets, deletePods),
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

// What whoever creates a load, an experiment or a schedule must be allowed.
var (
	// RunJobs: a load runs as a Job with an image of the user's choice.
	RunJobs = Right{Verb: "create", Group: "batch", Resource: "jobs"}
	// CreateExperiments: the operator makes the runs of a schedule.
	CreateExperiments = Right{Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "redisexperiments"}
	// CreateLoadTests and CreateFaults: the operator makes those of an experiment.
	CreateLoadTests = Right{Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "redisloadtests"}
	CreateFaults    = Right{Verb: "create", Group: v1alpha1.GroupVersion.Group, Resource: "redisfaults"}
)

// Member is a member of a setting of an experiment: a fault that is held for a run.
type Member struct {
	Field string
	Type  v1alpha1.FaultType
}

// Settings are all members.
var Settings = []Member{
	{"config", v1alpha1.FaultConfig},
	{"ioThreads", v1alpha1.FaultIOThreads},
	{"resources", v1alpha1.FaultResources},
	{"podTemplate", v1alpha1.FaultPodTemplate},
	{"replicaScale", v1alpha1.FaultReplicaScale},
}

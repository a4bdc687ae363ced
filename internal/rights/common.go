package rights

import "github.com/redquake/redquake/api/v1alpha1"

// What whoever creates a fault of several kinds must be allowed.
var (
	DeletePods        = Need{Right: Right{Verb: "delete", Resource: "pods"}}
	CreatePods        = Need{Right: Right{Verb: "create", Resource: "pods"}}
	PatchStatefulSets = Need{Right: Right{
		Verb:     "patch",
		Group:    "apps",
		Resource: "statefulsets",
	}}
	PatchNodes = Need{Right: Right{
		Verb:     "patch",
		Resource: "nodes",
		Cluster:  true,
	}}

	ScaleDeployments = Need{Right: Right{
		Verb:     "update",
		Group:    "apps",
		Resource: "deployments/scale",
	}}
	// ScaleAllDeployments is the same in all namespaces.
	ScaleAllDeployments = Need{Right: Right{
		Verb:       "update",
		Group:      "apps",
		Resource:   "deployments/scale",
		Everywhere: true,
	}}

	// GetAllDeployments: whoever may read the Deployments of all namespaces knows what a fault with
	// one of them as its peer would tell.
	GetAllDeployments = Need{Right: Right{
		Verb:       "get",
		Group:      "apps",
		Resource:   "deployments",
		Everywhere: true,
	}}

	// ExecPods: whoever may run a command in a pod of Redis may send Redis any command: the closest to
	// what a fault by commands does.
	ExecPods = Need{Right: Right{Verb: "create", Resource: "pods/exec"}}
)

// What the operator must be allowed for several kinds. Kinds without grants send commands to Redis,
// or do nothing.
var (
	DeletesPods         = Grant{Resource: "pods", Verbs: []string{"delete"}}
	PatchesStatefulSets = Grant{
		Group:    "apps",
		Resource: "statefulsets",
		Verbs:    []string{"patch"},
	}
	// TaintsNodes: list shows whether another node can run the replacement, and which nodes lost
	// faults have left tainted.
	TaintsNodes = Grant{
		Resource: "nodes",
		Cluster:  true,
		Verbs:    []string{"get", "list", "patch"},
	}
)

// What whoever creates a load, an experiment or a schedule must be allowed.
var (
	// RunJobs: a load runs as a Job with an image of the user's choice.
	RunJobs = Right{
		Verb:     "create",
		Group:    "batch",
		Resource: "jobs",
	}
	// CreateExperiments: the operator makes the runs of a schedule.
	CreateExperiments = Right{
		Verb:     "create",
		Group:    v1alpha1.GroupVersion.Group,
		Resource: "redisexperiments",
	}
	// CreateLoadTests and CreateFaults: the operator makes those of an experiment.
	CreateLoadTests = Right{
		Verb:     "create",
		Group:    v1alpha1.GroupVersion.Group,
		Resource: "redisloadtests",
	}
	CreateFaults = Right{
		Verb:     "create",
		Group:    v1alpha1.GroupVersion.Group,
		Resource: "redisfaults",
	}
)

// Prefix is what the installation puts before the names of its cluster-scoped objects and of its
// roles.
const Prefix = "redquake-"

// ActForOthers is how the admission policies know the operator: it creates what somebody else was
// asked about before. The API server has no such resource. Only the operator has the right, wherever
// it is installed and whatever its ServiceAccount is called, and who has all rights anyway.
var ActForOthers = Right{
	Verb:     "act",
	Group:    "operator." + v1alpha1.GroupVersion.Group,
	Resource: "managers",
	Cluster:  true,
}

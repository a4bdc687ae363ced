package declared

import (
	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/rights"
)

// The components of the installation that an administrator adds.
const (
	// NodeFaults are faults that taint nodes, which belong to no namespace.
	NodeFaults = "node-faults"
	// NetworkFaults are faults that add a container with the capability NET_ADMIN to pods.
	NetworkFaults = "network-faults"
	// VolumeFaults are faults that delete data, or fill a volume.
	VolumeFaults = "volume-faults"
)

// All are all kinds: those that Redquake injects itself, and those that Chaos Mesh does.
var All = []Kind{
	native(Kind{
		Type:   v1alpha1.FaultPodKill,
		Doing:  "Killing %s",
		Needs:  needs{rights.DeletePods},
		Grants: grants{rights.DeletesPods},
	}),
	byCommand(v1alpha1.FaultProcessCrash, "Crashing the process of %s"),
	byCommand(v1alpha1.FaultOutOfMemory, "Filling the memory of %s"),
	byCommand(v1alpha1.FaultFailover, "The failover of %s"),
	native(Kind{
		Type:      v1alpha1.FaultVolumeAttachDelay,
		Doing:     "Killing %s and keeping its volume attached",
		Component: NodeFaults,
		Moves:     true,
		Attached:  true,
		Needs:     needs{rights.DeletePods, rights.CreatePods, rights.PatchNodes.Except(noTaint)},
		Grants: grants{
			{Resource: "pods", Verbs: []string{"create", "delete"}},
			{Resource: "persistentvolumeclaims", Verbs: []string{"get"}},
			rights.TaintsNodes.Except(noTaint),
			{Resource: "persistentvolumes", Cluster: true, Verbs: []string{"get"}},
			{
				Group:    "storage.k8s.io",
				Resource: "volumeattachments",
				Cluster:  true,
				Verbs:    []string{"get", "list"},
			},
		},
	}),
	native(Kind{
		Type:   v1alpha1.FaultIOThreads,
		Doing:  "Other I/O threads on %s",
		Member: "ioThreads",
		Needs: needs{
			rights.ExecPods, rights.PatchStatefulSets.Except(live),
			rights.DeletePods.Except(live),
		},
		Grants: grants{rights.PatchesStatefulSets.Except(live), rights.DeletesPods.Except(live)},
	}),
	native(Kind{
		Type:   v1alpha1.FaultConfig,
		Doing:  "Other settings of %s",
		Needs:  needs{rights.ExecPods},
		Member: "config",
	}),
	native(Kind{
		Type:   v1alpha1.FaultReplicaScale,
		Doing:  "Scaling the replicas of %s",
		Needs:  needs{rights.ExecPods, rights.PatchStatefulSets},
		Member: "replicaScale",
		Grants: grants{
			rights.PatchesStatefulSets,
			{
				Group:    "autoscaling",
				Resource: "horizontalpodautoscalers",
				Verbs:    []string{"list"},
			},
		},
	}),
	native(Kind{
		Type:   v1alpha1.FaultResources,
		Doing:  "Other resources of %s",
		Member: "resources",
		// The cluster's edit does not include pods/resize, but may change the resources in the workload.
		Needs: needs{
			{
				Right: rights.Right{Verb: "patch", Resource: "pods/resize"},
				Or:    &rights.PatchStatefulSets.Right,
			},
		},
		Grants: grants{{Resource: "pods/resize", Verbs: []string{"patch"}}},
	}),
	native(Kind{
		Type:   v1alpha1.FaultPodTemplate,
		Doing:  "Replacing the pods of %s",
		Member: "podTemplate",
		Needs:  needs{rights.PatchStatefulSets, rights.DeletePods},
		Grants: grants{rights.PatchesStatefulSets, rights.DeletesPods},
	}),
	byCommand(v1alpha1.FaultHang, "Hanging %s"),
	byCommand(v1alpha1.FaultClientPause, "Pausing the clients of %s"),
	byCommand(v1alpha1.FaultClientKill, "Closing the connections of %s"),
	byCommand(v1alpha1.FaultBackgroundSave, "A background save of %s"),
	native(Kind{
		Type:      v1alpha1.FaultNodeLoss,
		Doing:     "Losing the node of %s",
		Component: NodeFaults,
		Moves:     true,
		Needs:     needs{rights.DeletePods, rights.PatchNodes},
		Grants: grants{
			rights.DeletesPods,
			rights.TaintsNodes,
			rights.Grant{
				Group:    "coordination.k8s.io",
				Resource: "leases",
				Cluster:  true, // those of the kubelets
				Verbs:    []string{"get"},
			}.Except(byTaint),
		},
	}),
	native(Kind{
		Type:      v1alpha1.FaultZoneLoss,
		Doing:     "Losing the zone of %s",
		Component: NodeFaults,
		Moves:     true,
		Needs:     needs{rights.DeletePods, rights.PatchNodes},
		Grants:    grants{rights.DeletesPods, rights.TaintsNodes},
	}),
	native(Kind{
		Type:  v1alpha1.FaultDrain,
		Doing: "Draining %s",
		Needs: needs{
			{Right: rights.Right{Verb: "create", Resource: "pods/eviction"}},
			rights.PatchNodes.Except(noNode),
		},
		Grants: grants{
			{Resource: "pods/eviction", Verbs: []string{"create"}},
			{Group: "policy", Resource: "poddisruptionbudgets", Verbs: []string{"list"}},
			rights.TaintsNodes.Except(noNode).By(NodeFaults),
		},
	}),
	native(Kind{
		Type:  v1alpha1.FaultOperatorOutage,
		Doing: "Keeping the operator of %s away",
		Needs: needs{
			rights.ScaleDeployments,
			rights.ScaleAllDeployments.Except(ownNamespace),
		},
		Grants: grants{
			{Group: "apps", Resource: "deployments", Verbs: []string{"get"}},
			{Group: "apps", Resource: "deployments/scale", Verbs: []string{"update"}},
		},
	}),
	native(Kind{
		Type:      v1alpha1.FaultVolumeLoss,
		Doing:     "Losing the volumes of %s",
		Component: VolumeFaults,
		Needs: needs{
			rights.DeletePods,
			{Right: rights.Right{Verb: "delete", Resource: "persistentvolumeclaims"}},
		},
		Grants: grants{
			rights.DeletesPods,
			{Resource: "persistentvolumeclaims", Verbs: []string{"get", "delete"}},
		},
	}),
	native(Kind{
		Type:      v1alpha1.FaultDiskFull,
		Doing:     "Filling the volume of %s",
		Component: VolumeFaults,
		Needs:     needs{rights.CreatePods, rights.ExecPods},
		Grants: grants{
			{Resource: "pods", Verbs: []string{"create", "delete"}},
			{Resource: "pods/exec", Verbs: []string{"create", "get"}}, // by SPDY, and by WebSockets
			{Resource: "persistentvolumeclaims", Verbs: []string{"get"}},
		},
	}),
	keeping(ofOperators(inNetwork(v1alpha1.FaultNetworkPartition, "Cutting %s off"), "networkPartition")),
	ofOperators(inNetwork(v1alpha1.FaultNetworkLoss, "Losing packets of %s"), "networkLoss"),
	inNetwork(v1alpha1.FaultNetworkDelay, "Delaying packets of %s"),
	native(Kind{
		Type:     v1alpha1.FaultExternal,
		Doing:    "What broke %s",
		External: true,
	}),

	byChaosMesh(Kind{
		Type:  v1alpha1.FaultPodKill,
		Doing: "Killing %s",
		Role:  "podkill-chaosmesh",
	}, "podchaos"),
	byChaosMesh(Kind{
		Type:  v1alpha1.FaultNetworkDelay,
		Doing: "Delaying the network of %s",
		Role:  "networkdelay-chaosmesh",
	}, "networkchaos"),
	byChaosMesh(Kind{
		Type:  v1alpha1.FaultNetworkLoss,
		Doing: "Losing packets of %s",
		Role:  "networkloss-chaosmesh",
	}, "networkchaos"),
	keeping(byChaosMesh(Kind{
		Type:  v1alpha1.FaultNetworkPartition,
		Doing: "Cutting %s off",
		Role:  "networkpartition-chaosmesh",
	}, "networkchaos")),
	byChaosMesh(Kind{Type: v1alpha1.FaultDiskDelay, Doing: "Slowing the disk of %s"}, "iochaos"),
	byChaosMesh(Kind{Type: v1alpha1.FaultCPUStress, Doing: "Burning CPU beside %s"}, "stresschaos"),
	byChaosMesh(Kind{Type: v1alpha1.FaultClockSkew, Doing: "Shifting the clock of %s"}, "timechaos"),
}

type (
	needs  = []rights.Need
	grants = []rights.Grant
)

// The settings with which a kind needs less.
var (
	live = &rights.Setting{
		Field:   []string{"ioThreads", "method"},
		Default: string(v1alpha1.ApplyAuto),
		Value:   string(v1alpha1.ApplyLive),
	}
	noTaint = &rights.Setting{
		Field:   []string{"volumeAttachDelay", "keepAway"},
		Default: string(v1alpha1.KeepAwayTaint),
		Value:   string(v1alpha1.KeepAwayNone),
	}
	byTaint = &rights.Setting{
		Field:   []string{"nodeLoss", "method"},
		Default: string(v1alpha1.LossTaint),
		Value:   string(v1alpha1.LossTaint),
	}
	ownNamespace = &rights.Setting{Field: []string{"operatorOutage", "namespace"}}
	noNode       = &rights.Setting{Field: []string{"drain", "node"}}
)

func native(k Kind) Kind {
	k.Engine = v1alpha1.EngineNative
	return k
}

// byCommand is a kind that consists of commands to Redis.
func byCommand(typ v1alpha1.FaultType, doing string) Kind {
	return native(Kind{
		Type:  typ,
		Doing: doing,
		Needs: needs{rights.ExecPods},
	})
}

// inNetwork is a kind that drops or delays packets in the network of a pod, by a container that it
// adds to it. Who may add one may run anything there, with the capability NET_ADMIN.
func inNetwork(typ v1alpha1.FaultType, doing string) Kind {
	return native(Kind{
		Type:      typ,
		Doing:     doing,
		Component: NetworkFaults,
		Needs: needs{
			{Right: rights.Right{Verb: "patch", Resource: "pods/ephemeralcontainers"}},
			rights.ExecPods,
		},
		Grants: grants{
			{Resource: "pods/ephemeralcontainers", Verbs: []string{"patch"}},
			{Resource: "pods/exec", Verbs: []string{"create", "get"}}, // by SPDY, and by WebSockets
		},
	})
}

// ofOperators is a kind whose peers may be the pods of the Redis' operator.
func ofOperators(k Kind, member string) Kind {
	k.Needs = append(k.Needs,
		rights.GetAllDeployments.Except(&rights.Setting{Field: []string{member, "operator", "namespace"}}))
	k.Grants = append(k.Grants, rights.Grant{Group: "apps", Resource: "deployments", Verbs: []string{"get"}})
	return k
}

// keeping is a kind that is to lose no acknowledged write: where it does, a cut from others than the
// clients is the reason, which nobody sees in the figures of the requests.
func keeping(k Kind) Kind {
	k.Keeps = true
	return k
}

// byChaosMesh is a kind that consists of one object of Chaos Mesh.
func byChaosMesh(k Kind, resource string) Kind {
	k.Engine = v1alpha1.EngineChaosMesh
	k.Needs = needs{{Right: rights.Right{
		Verb:     "create",
		Group:    "chaos-mesh.org",
		Resource: resource,
	}}}
	k.Grants = grants{
		{
			Group:    "chaos-mesh.org",
			Resource: resource,
			Verbs:    []string{"get", "list", "create", "delete"},
		},
	}
	return k
}

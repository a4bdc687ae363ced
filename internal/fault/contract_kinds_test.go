package fault_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
)

// kind is a kind of fault with what the contract tests expect of it.
type kind struct {
	name   string
	action v1alpha1.Action
	mesh   bool // by Chaos Mesh
	lasts  time.Duration
	// stays: its effect is not reverted, for example a promotion or a new process.
	stays bool
	// rolls: it replaces pods, and its revert does so again.
	rolls bool
	// unrecorded: it has no record.
	unrecorded bool
	// third, of a kind that lasts: what somebody else sets meanwhile.
	third third
}

// kinds are all kinds. TestEveryKindHasAContractTest checks that none is missing.
var kinds = []kind{
	{name: "PodKill", action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}, unrecorded: true},
	{
		name: "PodKill at once",
		action: v1alpha1.Action{
			Type:    v1alpha1.FaultPodKill,
			PodKill: &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))},
		},
		unrecorded: true,
	},
	{name: "PodKill that lasts", action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}, lasts: time.Minute, third: itsTime},
	{name: "ProcessCrash", action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash}, unrecorded: true},
	{
		name: "ProcessCrash by segfault",
		action: v1alpha1.Action{
			Type:         v1alpha1.FaultProcessCrash,
			ProcessCrash: &v1alpha1.ProcessCrash{Method: v1alpha1.CrashSegfault},
		},
		unrecorded: true,
	},
	{name: "OutOfMemory", action: v1alpha1.Action{Type: v1alpha1.FaultOutOfMemory}},
	{
		name: "Failover",
		action: v1alpha1.Action{
			Type:     v1alpha1.FaultFailover,
			Failover: &v1alpha1.Failover{Method: v1alpha1.FailoverReplication},
		},
		stays: true,
	},
	{
		name:   "VolumeAttachDelay",
		action: v1alpha1.Action{Type: v1alpha1.FaultVolumeAttachDelay},
		lasts:  time.Minute,
		third:  itsOwn,
	},
	{
		name:   "NodeLoss",
		action: v1alpha1.Action{Type: v1alpha1.FaultNodeLoss, NodeLoss: &v1alpha1.NodeLoss{Node: "node-1"}},
		lasts:  time.Minute,
		third:  itsOwn,
	},
	{
		name: "NodeLoss by power",
		action: v1alpha1.Action{
			Type:     v1alpha1.FaultNodeLoss,
			NodeLoss: &v1alpha1.NodeLoss{Node: "node-1", Method: v1alpha1.LossPower},
		},
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name:   "ZoneLoss",
		action: v1alpha1.Action{Type: v1alpha1.FaultZoneLoss, ZoneLoss: &v1alpha1.ZoneLoss{Zone: "zone-of-node-1"}},
		lasts:  time.Minute,
		third:  itsOwn,
	},
	{
		name:   "Drain",
		action: v1alpha1.Action{Type: v1alpha1.FaultDrain},
	},
	{
		name:   "Drain of a node",
		action: v1alpha1.Action{Type: v1alpha1.FaultDrain, Drain: &v1alpha1.Drain{Node: "node-1"}},
		lasts:  time.Minute,
		third:  itsOwn,
	},
	{name: "VolumeLoss", action: v1alpha1.Action{Type: v1alpha1.FaultVolumeLoss}},
	{
		name: "DiskFull",
		action: v1alpha1.Action{
			Type:     v1alpha1.FaultDiskFull,
			DiskFull: &v1alpha1.DiskFull{Leave: resource.MustParse("16Mi")},
		},
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "OperatorOutage",
		action: v1alpha1.Action{
			Type: v1alpha1.FaultOperatorOutage,
			OperatorOutage: &v1alpha1.OperatorOutage{
				OperatorReference: v1alpha1.OperatorReference{Deployment: "operator"},
			},
		},
		lasts: time.Minute,
		third: scaledTo(7),
	},
	{
		name: "Config",
		action: v1alpha1.Action{
			Type:   v1alpha1.FaultConfig,
			Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}},
		},
		lasts: time.Minute,
		third: settingOf("hz", "77"),
	},
	{
		name:   "ReplicaScale, one more",
		action: v1alpha1.Action{Type: v1alpha1.FaultReplicaScale, ReplicaScale: &v1alpha1.ReplicaScale{By: 1}},
		lasts:  time.Minute,
		third:  replicasOf(7),
	},
	{
		name:   "ReplicaScale, one less",
		action: v1alpha1.Action{Type: v1alpha1.FaultReplicaScale, ReplicaScale: &v1alpha1.ReplicaScale{By: -1}},
		lasts:  time.Minute,
		third:  replicasOf(7),
	},
	{
		name: "Resources",
		action: v1alpha1.Action{
			Type:      v1alpha1.FaultResources,
			Resources: &v1alpha1.Resources{CPU: new(resource.MustParse("1"))},
		},
		lasts: time.Minute,
		third: cpuOf("3"),
	},
	{
		name:   "IOThreads",
		action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Count: 2}},
		lasts:  time.Minute,
		third:  settingOf("io-threads", "3"),
	},
	{
		name: "PodTemplate",
		action: v1alpha1.Action{
			Type: v1alpha1.FaultPodTemplate,
			PodTemplate: &v1alpha1.PodTemplate{Patch: v1alpha1.PodTemplatePatch{
				Spec: &runtime.RawExtension{
					Raw: []byte(
						`{"priorityClassName":"high","containers":[{"name":"redis","env":[{"name":"TOKEN","value":"s3cret-token"}]}]}`),
				},
			}},
		},
		lasts: time.Minute,
		rolls: true,
		third: priorityOf("highest"),
	},
	{
		name:   "Hang by DEBUG SLEEP",
		action: v1alpha1.Action{Type: v1alpha1.FaultHang},
		lasts:  3 * time.Second,
		third:  itsTime,
	},
	{
		name:   "Hang by CLIENT PAUSE",
		action: v1alpha1.Action{Type: v1alpha1.FaultHang, Hang: &v1alpha1.Hang{Method: v1alpha1.HangClientPause}},
		lasts:  3 * time.Second,
		third:  itsTime,
	},
	{
		name:       "ClientPause",
		action:     v1alpha1.Action{Type: v1alpha1.FaultClientPause},
		lasts:      time.Minute,
		unrecorded: true,
		third:      itsTime,
	},
	{
		name: "ClientPause of writes",
		action: v1alpha1.Action{
			Type:        v1alpha1.FaultClientPause,
			ClientPause: &v1alpha1.ClientPause{Mode: v1alpha1.PauseWrite},
		},
		lasts: time.Minute,
		third: third{none: "a server does not say who has paused it"},
	},
	{name: "ClientKill", action: v1alpha1.Action{Type: v1alpha1.FaultClientKill}},
	{name: "BackgroundSave", action: v1alpha1.Action{Type: v1alpha1.FaultBackgroundSave}},
	{name: "PodKill by Chaos Mesh", action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}, mesh: true, unrecorded: true},
	{
		name: "NetworkDelay",
		action: v1alpha1.Action{
			Type: v1alpha1.FaultNetworkDelay,
			NetworkDelay: &v1alpha1.NetworkDelay{
				Latency:   metav1.Duration{Duration: time.Second},
				Direction: v1alpha1.DirectionOut,
			},
		},
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "NetworkDelay by Chaos Mesh",
		action: v1alpha1.Action{
			Type: v1alpha1.FaultNetworkDelay,
			NetworkDelay: &v1alpha1.NetworkDelay{
				Latency:   metav1.Duration{Duration: time.Second},
				Direction: v1alpha1.DirectionOut,
			},
		},
		mesh:  true,
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "NetworkPartition from clients",
		action: v1alpha1.Action{
			Type: v1alpha1.FaultNetworkPartition,
			NetworkPartition: &v1alpha1.NetworkPartition{
				Peers:     []v1alpha1.NetworkPeer{v1alpha1.PeerClients},
				Direction: v1alpha1.DirectionBoth,
			},
		},
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "NetworkPartition from replicas",
		action: v1alpha1.Action{
			Type: v1alpha1.FaultNetworkPartition,
			NetworkPartition: &v1alpha1.NetworkPartition{
				Peers:     []v1alpha1.NetworkPeer{v1alpha1.PeerReplicas},
				Direction: v1alpha1.DirectionIn,
			},
		},
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "NetworkLoss of everybody",
		action: v1alpha1.Action{
			Type:        v1alpha1.FaultNetworkLoss,
			NetworkLoss: &v1alpha1.NetworkLoss{Loss: "10%", Direction: v1alpha1.DirectionIn},
		},
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "NetworkLoss by Chaos Mesh",
		action: v1alpha1.Action{
			Type:        v1alpha1.FaultNetworkLoss,
			NetworkLoss: &v1alpha1.NetworkLoss{Loss: "10%", Direction: v1alpha1.DirectionOut},
		},
		mesh:  true,
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "NetworkPartition by Chaos Mesh",
		action: v1alpha1.Action{
			Type:             v1alpha1.FaultNetworkPartition,
			NetworkPartition: &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerClients}, Direction: v1alpha1.DirectionBoth},
		},
		mesh:  true,
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name: "DiskDelay",
		action: v1alpha1.Action{
			Type:      v1alpha1.FaultDiskDelay,
			DiskDelay: &v1alpha1.DiskDelay{Delay: metav1.Duration{Duration: time.Second}},
		},
		mesh:  true,
		lasts: time.Minute,
		third: itsOwn,
	},
	{
		name:   "CPUStress",
		action: v1alpha1.Action{Type: v1alpha1.FaultCPUStress},
		mesh:   true,
		lasts:  time.Minute,
		third:  itsOwn,
	},
	{
		name: "ClockSkew",
		action: v1alpha1.Action{
			Type:      v1alpha1.FaultClockSkew,
			ClockSkew: &v1alpha1.ClockSkew{Offset: metav1.Duration{Duration: time.Hour}},
		},
		mesh:  true,
		lasts: time.Minute,
		third: itsOwn,
	},
}

// A kind that the operator can inject and that is missing in this table would not be tested.
func TestEveryKindHasAContractTest(t *testing.T) {
	for _, typ := range fault.Types() {
		// External injects nothing
		if typ != v1alpha1.FaultExternal && !slices.ContainsFunc(kinds, func(k kind) bool { return k.action.Type == typ }) {
			t.Errorf("no case for %s", typ)
		}
	}
	for _, k := range kinds {
		if !slices.Contains(fault.Types(), k.action.Type) {
			t.Errorf("%s: the operator does not support %s", k.name, k.action.Type)
		}
	}
}

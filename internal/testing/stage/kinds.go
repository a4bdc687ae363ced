//go:build integration

package stage

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/serverstate"
)

// Kinds are all kinds of faults, each with a suitable target and the shortest possible course; the
// slowest first.
var Kinds = slices.Concat(NativeKinds, ClusterKinds, networkKinds, diskKinds, meshKinds)

// NativeKinds are those that Redquake injects itself.
var NativeKinds = []Kind{
	{
		Name:  "IOThreads by a roll",
		Quick: true,
		Fault: v1alpha1.FaultIOThreads,
		needs: NeedsWorkload,
		Scene: FleetOf(2, nil),
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.IOThreads, spec.Duration = &v1alpha1.IOThreads{
				Count:  2,
				Method: v1alpha1.ApplyRoll,
			}, operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.IOThreads = &v1alpha1.IOThreads{
				Count:  Pick(d, int32(0), 1, 2, 128),
				Reads:  d.Yes(),
				Method: Pick(d, "", v1alpha1.ApplyAuto, v1alpha1.ApplyLive, v1alpha1.ApplyRoll),
			}
		},
	},
	{
		Name:  "PodTemplate",
		Quick: true,
		Fault: v1alpha1.FaultPodTemplate,
		needs: NeedsWorkload,
		Scene: FleetOf(2, nil),
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.PodTemplate, spec.Duration = TemplatePatch(
				`{"terminationGracePeriodSeconds": 4, "containers": [{"name": "redis", "env": [{"name": "TOKEN", "value": "`+
					PlantedInPatch+`"}]}]}`), operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.PodTemplate = Pick(d, nil, &v1alpha1.PodTemplate{},
				TemplatePatch(`{"priorityClassName": "high"}`),
				TemplatePatch(`{"containers": [{"name": "redis"}], "nonsense": [1]}`),
				TemplatePatch(`{"containers": [{"image": "x"}]}`),
				TemplatePatch(`{"containers": null, "$patch": "replace"}`),
				TemplatePatch(`[]`))
		},
	},
	{
		Name:  "PodKill",
		Quick: true,
		Fault: v1alpha1.FaultPodKill,
		Scene: Single(PodsDeleted),
		Spec:  plainSpec,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.PodKill = Maybe(d, v1alpha1.PodKill{GracePeriodSeconds: Maybe(d, int64(0), 3600)})
		},
	},
	{
		Name:  "PodKill, kept down",
		Fault: v1alpha1.FaultPodKill,
		Scene: Single(nil),
		Fades: true,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Duration = operatortest.Length(time.Second)
		},
	},
	{
		Name:  "ProcessCrash",
		Fault: v1alpha1.FaultProcessCrash,
		Scene: Single(ServersEnded),
		Spec:  plainSpec,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.ProcessCrash = Maybe(d, v1alpha1.ProcessCrash{
				Method: Pick(d, "", v1alpha1.CrashShutdown, v1alpha1.CrashSegfault),
			})
		},
	},
	{
		Name: "OutOfMemory", Fault: v1alpha1.FaultOutOfMemory, needs: NeedsWorkload, Scene: FleetOf(1, nil), Spec: plainSpec,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.OutOfMemory = Maybe(d, v1alpha1.OutOfMemory{Timeout: *operatortest.Length(time.Minute)})
		},
	},
	{
		Name:  "Config",
		Quick: true,
		Fault: v1alpha1.FaultConfig,
		Scene: Single(nil),
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Config = &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{"hz": "50", "maxclients": "500"},
			}
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.Config = &v1alpha1.Config{
				Parameters: Pick(d, map[string]v1alpha1.ParameterValue{"appendfsync": "always"},
					map[string]v1alpha1.ParameterValue{"port": "1", "maxclients": "0"},
					map[string]v1alpha1.ParameterValue{"Bad Name": "x"}, nil,
					map[string]v1alpha1.ParameterValue{"maxmemory": ""}),
			}
		},
	},
	{
		Name:  "Config, a setting",
		Fault: v1alpha1.FaultConfig,
		needs: NeedsLoad,
		Scene: Single(nil),
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Config = &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{"hz": "50", "maxclients": "500"},
			}
			spec.Setting = true
			spec.Trigger = v1alpha1.FaultTrigger{}
			spec.Duration = operatortest.Length(time.Second)
		},
	},
	{
		Name:  "Config, rewritten meanwhile",
		Fault: v1alpha1.FaultConfig,
		needs: NeedsFile,
		Scene: Rewritten,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Config, spec.Duration = &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"},
			}, operatortest.Length(time.Second)
		},
	},
	{
		Name:   "ClientPause",
		Pauses: true,
		Fault:  v1alpha1.FaultClientPause,
		Scene:  Single(nil),
		Fades:  true,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.ClientPause = Maybe(d, v1alpha1.ClientPause{
				Mode: Pick(d, "", v1alpha1.PauseAll, v1alpha1.PauseWrite),
			})
		},
	},
	{
		Name:   "ClientPause of writes",
		Pauses: true,
		Fault:  v1alpha1.FaultClientPause,
		Scene:  Single(nil),
		Fades:  true,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.ClientPause, spec.Duration = &v1alpha1.ClientPause{
				Mode: v1alpha1.PauseWrite,
			}, operatortest.Length(3*time.Second)
		},
	},
	{
		Name:  "Hang by DEBUG SLEEP",
		Fault: v1alpha1.FaultHang,
		Scene: Single(Slowly("debug"), "--enable-debug-command", "yes"),
		Spec:  hangs(v1alpha1.HangDebugSleep),
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.Hang = Maybe(d, v1alpha1.Hang{
				Method: Pick(d, "", v1alpha1.HangAuto, v1alpha1.HangDebugSleep, v1alpha1.HangScript,
					v1alpha1.HangClientPause),
			})
		},
	},
	{
		Name:  "Hang by a script",
		Fault: v1alpha1.FaultHang,
		Scene: Single(Slowly("eval_ro")),
		Spec:  hangs(v1alpha1.HangScript),
	},
	{
		Name:   "Hang by CLIENT PAUSE",
		Pauses: true,
		Fault:  v1alpha1.FaultHang,
		Scene:  Single(nil),
		Fades:  true,
		Spec:   hangs(v1alpha1.HangClientPause),
	},
	{
		Name:  "ClientKill",
		Fault: v1alpha1.FaultClientKill,
		Scene: Single(Executed("client|kill")),
		Spec:  plainSpec,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.ClientKill = Maybe(d, v1alpha1.ClientKill{
				Type: Pick(d, "", v1alpha1.ClientNormal, v1alpha1.ClientReplica, v1alpha1.ClientPubSub),
			})
		},
	},
	{
		Name:  "Resources",
		Fault: v1alpha1.FaultResources,
		needs: NeedsNodes,
		Scene: FleetOf(1, OnNodes),
		gauge: ofPods,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Resources, spec.Duration = &v1alpha1.Resources{
				CPU: new(resource.MustParse("1")),
			}, operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.Resources = &v1alpha1.Resources{
				CPU:    d.quantity("100m", "0", "-1", "1e9"),
				Memory: d.quantity("64Mi", "1", "0"),
			}
		},
	},
	{
		Name:  "ReplicaScale, one more",
		Quick: true,
		Fault: v1alpha1.FaultReplicaScale,
		needs: NeedsScaling,
		Scene: FleetOf(2, nil),
		Spec:  Scales(1),
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.ReplicaScale = &v1alpha1.ReplicaScale{
				By:          Pick(d, int32(-16), -1, 0, 1, 16),
				SyncTimeout: d.Value(time.Second, time.Hour),
			}
		},
	},
	{
		Name: "ReplicaScale, one less", Fault: v1alpha1.FaultReplicaScale, needs: NeedsScaling, Scene: FleetOf(3, nil), Spec: Scales(-1),
	},
	{
		Name:  "Failover without sentinels",
		Fault: v1alpha1.FaultFailover,
		needs: NeedsReplication,
		Scene: FleetOf(3, nil),
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Failover = &v1alpha1.Failover{Method: v1alpha1.FailoverReplication}
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.Failover = Maybe(d, v1alpha1.Failover{
				Method: Pick(d, "", v1alpha1.FailoverAuto, v1alpha1.FailoverSentinel, v1alpha1.FailoverCluster,
					v1alpha1.FailoverReplication),
				Mode: Pick(d, "", v1alpha1.FailoverPlain, v1alpha1.FailoverCoordinated, v1alpha1.FailoverForce,
					v1alpha1.FailoverTakeover),
				Timeout: d.Value(time.Second, time.Minute),
			})
		},
	},
	{
		Name: "PodKill, all at once", Fault: v1alpha1.FaultPodKill, needs: NeedsReplication, targets: 2, Scene: FleetOf(2, nil), Spec: allAtOnce,
	},
	{
		Name:    "Config, all at once",
		Fault:   v1alpha1.FaultConfig,
		needs:   NeedsReplication,
		targets: 2,
		Scene:   staying(2),
		Spec: func(p *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			allAtOnce(p, spec)
			spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
			spec.Duration = operatortest.Length(time.Second)
		},
	},
	{
		Name:  "Failover by sentinels",
		Quick: true,
		Fault: v1alpha1.FaultFailover,
		needs: NeedsSentinels,
		Scene: watched,
		Spec:  plainSpec,
	},
	{
		Name:   "Failover by sentinels, coordinated",
		Pauses: true,
		Fault:  v1alpha1.FaultFailover,
		needs:  NeedsSentinels,
		Scene:  PatientlyWatched,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Failover = &v1alpha1.Failover{Mode: v1alpha1.FailoverCoordinated}
		},
	},
	{
		Name:   "NodeLoss",
		Fault:  v1alpha1.FaultNodeLoss,
		needs:  NeedsNodes,
		Scene:  FleetOf(1, OnNodes),
		gauge:  ofNodes,
		Spec:   onNodeOfRedis(losesNode),
		OnNode: losesNode,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.NodeLoss = &v1alpha1.NodeLoss{Node: d.Text("node-1", "gone", "")}
		},
	},
	{
		Name: "NodeLoss by power", Quick: true, Fault: v1alpha1.FaultNodeLoss, needs: NeedsPower, gauge: ofNodes,
		Scene: FleetOf(1, Powered), Spec: onNodeOfRedis(cutsPower), OnNode: cutsPower,
	},
	{
		Name:   "ZoneLoss",
		Fault:  v1alpha1.FaultZoneLoss,
		needs:  NeedsNodes,
		Scene:  FleetOf(1, OnNodes),
		gauge:  ofNodes,
		Spec:   onNodeOfRedis(losesZone),
		OnNode: losesZone,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.ZoneLoss = &v1alpha1.ZoneLoss{Zone: d.Text("node-1", "gone", "")}
		},
	},
	{
		Name:  "Drain",
		Quick: true,
		Fault: v1alpha1.FaultDrain,
		Scene: Single(PodsDeleted),
		Spec:  plainSpec,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.Drain = Maybe(d, v1alpha1.Drain{
				Node:               d.Text("", "node-1", "gone"),
				GracePeriodSeconds: Maybe(d, int64(0), 3600),
				Timeout:            d.Value(30*time.Second, time.Hour),
			})
		},
	},
	{
		Name:   "Drain of a node",
		Fault:  v1alpha1.FaultDrain,
		needs:  NeedsNodes,
		Scene:  FleetOf(1, OnNodes),
		gauge:  ofNodes,
		Spec:   onNodeOfRedis(drainsNode),
		OnNode: drainsNode,
	},
	{
		Name: "Drain, all at once", Fault: v1alpha1.FaultDrain, needs: NeedsReplication, targets: 2, Scene: FleetOf(2, nil), Spec: allAtOnce,
	},
	{
		Name:  "VolumeLoss",
		Quick: true,
		Fault: v1alpha1.FaultVolumeLoss,
		needs: NeedsNodes,
		Scene: FleetOf(1, OnClaims),
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			if !slices.Contains(spec.Allow, v1alpha1.AllowDataLoss) {
				spec.Allow = append(spec.Allow, v1alpha1.AllowDataLoss)
			}
		},
	},
	{
		Name:  "OperatorOutage",
		Quick: true,
		Fault: v1alpha1.FaultOperatorOutage,
		needs: NeedsOperator,
		Scene: FleetOf(1, Operated),
		gauge: ofDeployments,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.OperatorOutage = &v1alpha1.OperatorOutage{OperatorReference: v1alpha1.OperatorReference{Deployment: operatorName}}
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.OperatorOutage = &v1alpha1.OperatorOutage{OperatorReference: v1alpha1.OperatorReference{
				Deployment: d.Text(operatorName, "gone", "A b"),
				Namespace:  d.Text("", "elsewhere"),
			}}
		},
	},
	{
		Name:  "VolumeAttachDelay",
		Quick: true,
		Fault: v1alpha1.FaultVolumeAttachDelay,
		needs: NeedsNodes,
		Scene: FleetOf(1, OnVolume),
		gauge: ofNodes,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Duration = operatortest.Length(3 * time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.VolumeAttachDelay = Maybe(d, v1alpha1.VolumeAttachDelay{
				KeepAway: Pick(d, "", v1alpha1.KeepAwayTaint, v1alpha1.KeepAwayNone),
				Image:    d.Text("", "x", "a b"),
			})
		},
	},
	{
		Name:  "BackgroundSave",
		Fault: v1alpha1.FaultBackgroundSave,
		Scene: Single(Executed("bgsave")),
		Spec:  plainSpec,
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.BackgroundSave = Maybe(d, v1alpha1.BackgroundSave{
				Kind: Pick(d, "", v1alpha1.SaveSnapshot, v1alpha1.SaveAppendOnlyRewrite),
			})
		},
	},
}

// PlantedInPatch is the value of a variable that is secret.
const PlantedInPatch = Planted + "-variable"

// TemplatePatch is a patch of the spec of a pod template.
func TemplatePatch(spec string) *v1alpha1.PodTemplate {
	return &v1alpha1.PodTemplate{
		Patch: v1alpha1.PodTemplatePatch{Spec: &runtime.RawExtension{Raw: []byte(spec)}},
	}
}

func plainSpec(*operatortest.Place, *v1alpha1.RedisFaultSpec) {}

func losesNode(a *v1alpha1.Action, node string) { a.NodeLoss = &v1alpha1.NodeLoss{Node: node} }

func cutsPower(a *v1alpha1.Action, node string) {
	a.NodeLoss = &v1alpha1.NodeLoss{Node: node, Method: v1alpha1.LossPower}
}

// losesZone loses the zone of a node, which has its name: see OnNodes.
func losesZone(a *v1alpha1.Action, node string) { a.ZoneLoss = &v1alpha1.ZoneLoss{Zone: node} }

func drainsNode(a *v1alpha1.Action, node string) { a.Drain = &v1alpha1.Drain{Node: node} }

// onNodeOfRedis is the spec of a fault that breaks what is on the node of Redis, for a second.
func onNodeOfRedis(
	names func(*v1alpha1.Action, string),
) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(p *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		names(&spec.Action, operatortest.RedisPodOf(p).Spec.NodeName)
		spec.Duration = operatortest.Length(time.Second)
	}
}

// allAtOnce is the spec of a fault that breaks the primary and its replicas, all at the same time.
func allAtOnce(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
	spec.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
	spec.Allow = append(spec.Allow, v1alpha1.AllowAllCopies)
}

// Scales is the spec of a fault that changes the number of replicas for a second.
func Scales(by int32) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.ReplicaScale, spec.Duration = &v1alpha1.ReplicaScale{By: by},
			operatortest.Length(time.Second)
	}
}

// Executed counts how often a server has executed a command.
func Executed(command string) func(*operatortest.RedisSet) int {
	return func(s *operatortest.RedisSet) int { return serverstate.Calls(s.Address(), command) }
}

// Slowly counts the executions of a command in the slow log of a server.
func Slowly(command string) func(*operatortest.RedisSet) int {
	return func(s *operatortest.RedisSet) int { return serverstate.Slow(s.Address(), command) }
}

func hangs(method v1alpha1.HangMethod) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.Hang, spec.Duration = &v1alpha1.Hang{
			Method: method,
		}, operatortest.Length(1200*time.Millisecond)
	}
}

// ServersEnded counts the servers that were killed, or have ended by themselves.
func ServersEnded(s *operatortest.RedisSet) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return len(s.Killed)
}

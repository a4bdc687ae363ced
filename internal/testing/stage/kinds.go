//go:build integration

package stage

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Kinds are all kinds of faults, each with a suitable target and the shortest possible course; the
// slowest first.
var Kinds = slices.Concat(NativeKinds, ClusterKinds, meshKinds)

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
		Name:  "ReplicaScale, one less",
		Fault: v1alpha1.FaultReplicaScale,
		needs: NeedsScaling,
		Scene: FleetOf(3, nil),
		Spec:  Scales(-1),
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
		Name:  "NodeLoss",
		Fault: v1alpha1.FaultNodeLoss,
		needs: NeedsNodes,
		Scene: FleetOf(1, OnNodes),
		gauge: ofNodes,
		Spec: func(p *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.NodeLoss = &v1alpha1.NodeLoss{Node: operatortest.RedisPodOf(p).Spec.NodeName}
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.NodeLoss = &v1alpha1.NodeLoss{Node: d.Text("node-1", "gone", "")}
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

// RedisPods is a target by its pods' label; the load goes to the addresses.
func RedisPods(addresses ...string) v1alpha1.RedisTarget {
	return v1alpha1.RedisTarget{
		Addresses:   addresses,
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
	}
}

// Single is the scene of one server in one pod.
func Single(
	broken func(*operatortest.RedisSet) int, options ...string,
) func(*operatortest.Place) Scene {
	return func(p *operatortest.Place) Scene {
		set := operatortest.StartRedis(p, options...)
		sc := Scene{
			Target: RedisPods(set.Address()),
			Shows:  func() map[string]string { return ServerShows(set.Address()) },
		}
		if broken != nil {
			sc.broken = func() int { return broken(set) }
		}
		return sc
	}
}

// PodsDeleted counts the deleted pods.
func PodsDeleted(s *operatortest.RedisSet) int {
	return len(s.PodsDeleted())
}

// FleetOf is the scene of a StatefulSet.
func FleetOf(
	replicas int32, change func(*Fleet, *appsv1.StatefulSet),
) func(*operatortest.Place) Scene {
	return func(p *operatortest.Place) Scene {
		f := StartFleet(p, replicas, change)
		return Scene{
			Target:  RedisPods(f.Address(0)),
			Shows:   f.Shows,
			Primary: f.PrimaryOf,
			AsksAPI: true,
		}
	}
}

// watched is the scene of a primary and two replicas that three sentinels watch.
func watched(p *operatortest.Place) Scene {
	return watchedFor(p, 0)
}

// PatientlyWatched leaves time for a failover while the primary's writes are paused.
func PatientlyWatched(p *operatortest.Place) Scene {
	return watchedFor(p, 10*time.Second)
}

func watchedFor(p *operatortest.Place, downAfter time.Duration) Scene {
	set := redistest.NewSentinel(p.T, 2, redistest.SentinelOptions{DownAfter: downAfter})
	addresses := PodsOf(p, set.Servers())
	target := RedisPods()
	target.Sentinel = &v1alpha1.SentinelTarget{
		Addresses:  set.SentinelAddresses(),
		MasterName: redistest.MasterName,
	}
	return Scene{
		Target: target,
		Shows:  func() map[string]string { return ServersShow(addresses) },
		broken: func() int { return failoversOf(set) },
	}
}

// failoversOf returns the number of failovers by sentinels: each one increments the config epoch.
func failoversOf(set *redistest.Sentinel) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client, latest := redis.NewClient(nil), int64(0)
	defer client.Close()
	for _, sentinel := range set.Sentinels {
		reply, err := client.Do(ctx, sentinel.Address(), redis.Login{}, "SENTINEL", "MASTER",
			redistest.MasterName)
		if err != nil {
			continue
		}
		if watched, err := topology.ParseWatched(reply); err == nil {
			latest = max(latest, watched.ConfigEpoch)
		}
	}
	return int(latest)
}

// PodsOf creates a pod for each server, and returns the addresses of the servers by pod name.
func PodsOf(p *operatortest.Place, servers []*redistest.Server) map[string]string {
	p.T.Helper()
	addresses := map[string]string{}
	for i, server := range servers {
		name := fmt.Sprintf("redis-%d", i)
		addresses[name] = server.Address()
		PodAt(p, name, map[string]string{"app": "redis"}, server.Port)
	}
	return addresses
}

// PodAt creates a pod at 127.0.0.1.
func PodAt(p *operatortest.Place, name string, labels map[string]string, port int) {
	p.T.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: int32(port)}},
		}}},
	}
	p.Create(pod)
	pod.Status = corev1.PodStatus{
		Phase:  corev1.PodRunning,
		PodIP:  "127.0.0.1",
		PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
	}
	p.MustChange(p.Client.Status().Update(context.Background(), pod))
}

// Rewritten is the scene of a server whose configuration file is rewritten as soon as a fault has
// changed hz, as Sentinel does.
func Rewritten(p *operatortest.Place) Scene {
	server := redistest.NewServer(p.T, redistest.Options{})
	addresses := PodsOf(p, []*redistest.Server{server})
	RewriteOf(p, server.Address())
	return Scene{Target: RedisPods(server.Address()), Shows: func() map[string]string {
		shows := ServersShow(addresses)
		file, err := os.ReadFile(configFile(server.Dir))
		shows["hz in the file"] = fmt.Sprint(strings.Contains(string(file), "hz 50"), err)
		return shows
	}}
}

// RewriteOf rewrites the file of a server as soon as a fault has changed hz.
func RewriteOf(p *operatortest.Place, address string) {
	c := goredis.NewClient(&goredis.Options{
		Addr:                  address,
		MaxRetries:            -1,
		DialerRetries:         1,
		DisableIdentity:       true,
		ContextTimeoutEnabled: true,
	})
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		done := false // for this fault
		for ctx.Err() == nil {
			await.Pass(20*time.Millisecond, "the time between two looks of what stands in for Sentinel")
			settings, _ := c.ConfigGet(ctx, "hz").Result()
			if settings["hz"] == "50" && !done {
				done = c.ConfigRewrite(ctx).Err() == nil
			}
			done = done && settings["hz"] == "50"
		}
	}()
	p.T.Cleanup(func() {
		stop()
		<-over
		_ = c.Close()
	})
}

// OnNodes adds two schedulable nodes to a fleet.
func OnNodes(f *Fleet, _ *appsv1.StatefulSet) {
	for _, name := range []string{"a", "b"} {
		node := f.Namespace + "-" + name
		cluster.NewNode(f.T, f.Client, node, map[string]string{PlaceLabel: f.Namespace})
		f.Pods.Nodes = append(f.Pods.Nodes, node)
	}
}

// OnVolume also gives a volume to each pod, which can be attached to one node at a time.
func OnVolume(f *Fleet, set *appsv1.StatefulSet) {
	OnNodes(f, set)
	for i := range 5 {
		f.Pods.Volumes = append(f.Pods.Volumes,
			cluster.NewVolume(f.T, f.Client, f.Namespace, fmt.Sprintf("%s-%d", f.Namespace, i),
				fmt.Sprintf("data-redis-%d", i)))
	}
	f.Pods.Admit = func(pod *corev1.Pod) { // as of a template of claims
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + pod.Name},
		}}}
		// the server's dir is in it
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "data", MountPath: os.TempDir()},
		}
	}
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
	return func(s *operatortest.RedisSet) int { return calls(s.Address(), command) }
}

// Slowly counts the executions of a command in the slow log of a server.
func Slowly(command string) func(*operatortest.RedisSet) int {
	return func(s *operatortest.RedisSet) int { return slow(s.Address(), command) }
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

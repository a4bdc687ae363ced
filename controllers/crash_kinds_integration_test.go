//go:build integration

package controllers

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
	"github.com/redquake/redquake/internal/testing/redistest"
)

// crashKinds are all kinds of faults, each with a suitable target and the shortest possible course; the slowest first.
var crashKinds = slices.Concat(nativeKinds, clusterKinds, meshKinds)

// nativeKinds are those that Redquake injects itself.
var nativeKinds = []crashKind{
	{
		name:  "IOThreads by a roll",
		quick: true,
		fault: v1alpha1.FaultIOThreads,
		needs: needsWorkload,
		scene: fleetOf(2, nil),
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.IOThreads, spec.Duration = &v1alpha1.IOThreads{Count: 2, Method: v1alpha1.ApplyRoll}, length(time.Second)
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.IOThreads = &v1alpha1.IOThreads{
				Count:  pick(d, int32(0), 1, 2, 128),
				Reads:  d.yes(),
				Method: pick(d, "", v1alpha1.ApplyAuto, v1alpha1.ApplyLive, v1alpha1.ApplyRoll),
			}
		},
	},
	{
		name:  "PodTemplate",
		quick: true,
		fault: v1alpha1.FaultPodTemplate,
		needs: needsWorkload,
		scene: fleetOf(2, nil),
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.PodTemplate, spec.Duration = templatePatch(
				`{"terminationGracePeriodSeconds": 4, "containers": [{"name": "redis", "env": [{"name": "TOKEN", "value": "`+
					plantedInPatch+`"}]}]}`), length(time.Second)
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.PodTemplate = pick(d, nil, &v1alpha1.PodTemplate{}, templatePatch(`{"priorityClassName": "high"}`),
				templatePatch(`{"containers": [{"name": "redis"}], "nonsense": [1]}`),
				templatePatch(`{"containers": [{"image": "x"}]}`), templatePatch(`{"containers": null, "$patch": "replace"}`),
				templatePatch(`[]`))
		},
	},
	{
		name:  "PodKill",
		quick: true,
		fault: v1alpha1.FaultPodKill,
		scene: single(podsDeleted),
		spec:  plainSpec,
		wild: func(d draw, a *v1alpha1.Action) {
			a.PodKill = maybe(d, v1alpha1.PodKill{GracePeriodSeconds: maybe(d, int64(0), 3600)})
		},
	},
	{
		name:  "PodKill, kept down",
		fault: v1alpha1.FaultPodKill,
		scene: single(nil),
		fades: true,
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Duration = length(time.Second)
		},
	},
	{
		name:  "ProcessCrash",
		fault: v1alpha1.FaultProcessCrash,
		scene: single(serversEnded),
		spec:  plainSpec,
		wild: func(d draw, a *v1alpha1.Action) {
			a.ProcessCrash = maybe(d, v1alpha1.ProcessCrash{Method: pick(d, "", v1alpha1.CrashShutdown, v1alpha1.CrashSegfault)})
		},
	},
	{
		name:  "Config",
		quick: true,
		fault: v1alpha1.FaultConfig,
		scene: single(nil),
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Config = &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{"hz": "50", "maxclients": "500"},
			}
			spec.Duration = length(time.Second)
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.Config = &v1alpha1.Config{
				Parameters: pick(d, map[string]v1alpha1.ParameterValue{"appendfsync": "always"},
					map[string]v1alpha1.ParameterValue{"port": "1", "maxclients": "0"},
					map[string]v1alpha1.ParameterValue{"Bad Name": "x"}, nil, map[string]v1alpha1.ParameterValue{"maxmemory": ""}),
			}
		},
	},
	{
		name:  "Config, a setting",
		fault: v1alpha1.FaultConfig,
		needs: needsLoad,
		scene: single(nil),
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Config = &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{"hz": "50", "maxclients": "500"},
			}
			spec.Setting, spec.Trigger, spec.Duration = true, v1alpha1.FaultTrigger{}, length(time.Second)
		},
	},
	{
		name:  "Config, rewritten meanwhile",
		fault: v1alpha1.FaultConfig,
		needs: needsFile,
		scene: rewritten,
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Config, spec.Duration = &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"},
			}, length(time.Second)
		},
	},
	{
		name:   "ClientPause",
		pauses: true,
		fault:  v1alpha1.FaultClientPause,
		scene:  single(nil),
		fades:  true,
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Duration = length(time.Second)
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.ClientPause = maybe(d, v1alpha1.ClientPause{Mode: pick(d, "", v1alpha1.PauseAll, v1alpha1.PauseWrite)})
		},
	},
	{
		name:   "ClientPause of writes",
		pauses: true,
		fault:  v1alpha1.FaultClientPause,
		scene:  single(nil),
		fades:  true,
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.ClientPause, spec.Duration = &v1alpha1.ClientPause{Mode: v1alpha1.PauseWrite}, length(3*time.Second)
		},
	},
	{
		name:  "Hang by DEBUG SLEEP",
		fault: v1alpha1.FaultHang,
		scene: single(slowly("debug"), "--enable-debug-command", "yes"),
		spec:  hangs(v1alpha1.HangDebugSleep),
		wild: func(d draw, a *v1alpha1.Action) {
			a.Hang = maybe(d, v1alpha1.Hang{
				Method: pick(d, "", v1alpha1.HangAuto, v1alpha1.HangDebugSleep, v1alpha1.HangScript, v1alpha1.HangClientPause),
			})
		},
	},
	{
		name:  "Hang by a script",
		fault: v1alpha1.FaultHang,
		scene: single(slowly("eval_ro")),
		spec:  hangs(v1alpha1.HangScript),
	},
	{
		name:   "Hang by CLIENT PAUSE",
		pauses: true,
		fault:  v1alpha1.FaultHang,
		scene:  single(nil),
		fades:  true,
		spec:   hangs(v1alpha1.HangClientPause),
	},
	{
		name:  "ClientKill",
		fault: v1alpha1.FaultClientKill,
		scene: single(executed("client|kill")),
		spec:  plainSpec,
		wild: func(d draw, a *v1alpha1.Action) {
			a.ClientKill = maybe(d, v1alpha1.ClientKill{
				Type: pick(d, "", v1alpha1.ClientNormal, v1alpha1.ClientReplica, v1alpha1.ClientPubSub),
			})
		},
	},
	{
		name:  "Resources",
		fault: v1alpha1.FaultResources,
		needs: needsNodes,
		scene: fleetOf(1, onNodes),
		gauge: ofPods,
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Resources, spec.Duration = &v1alpha1.Resources{CPU: new(resource.MustParse("1"))}, length(time.Second)
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.Resources = &v1alpha1.Resources{CPU: d.quantity("100m", "0", "-1", "1e9"), Memory: d.quantity("64Mi", "1", "0")}
		},
	},
	{
		name:  "ReplicaScale, one more",
		quick: true,
		fault: v1alpha1.FaultReplicaScale,
		needs: needsScaling,
		scene: fleetOf(2, nil),
		spec:  scales(1),
		wild: func(d draw, a *v1alpha1.Action) {
			a.ReplicaScale = &v1alpha1.ReplicaScale{
				By:          pick(d, int32(-16), -1, 0, 1, 16),
				SyncTimeout: d.value(time.Second, time.Hour),
			}
		},
	},
	{
		name:  "ReplicaScale, one less",
		fault: v1alpha1.FaultReplicaScale,
		needs: needsScaling,
		scene: fleetOf(3, nil),
		spec:  scales(-1),
	},
	{
		name:  "Failover without sentinels",
		fault: v1alpha1.FaultFailover,
		needs: needsReplication,
		scene: fleetOf(3, nil),
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Failover = &v1alpha1.Failover{Method: v1alpha1.FailoverReplication}
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.Failover = maybe(d, v1alpha1.Failover{
				Method: pick(d, "", v1alpha1.FailoverAuto, v1alpha1.FailoverSentinel, v1alpha1.FailoverCluster,
					v1alpha1.FailoverReplication),
				Mode: pick(d, "", v1alpha1.FailoverPlain, v1alpha1.FailoverCoordinated, v1alpha1.FailoverForce,
					v1alpha1.FailoverTakeover),
				Timeout: d.value(time.Second, time.Minute),
			})
		},
	},
	{
		name:  "Failover by sentinels",
		quick: true,
		fault: v1alpha1.FaultFailover,
		needs: needsSentinels,
		scene: watched,
		spec:  plainSpec,
	},
	{
		name:   "Failover by sentinels, coordinated",
		pauses: true,
		fault:  v1alpha1.FaultFailover,
		needs:  needsSentinels,
		scene:  patientlyWatched,
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Failover = &v1alpha1.Failover{Mode: v1alpha1.FailoverCoordinated}
		},
	},
	{
		name:  "NodeLoss",
		fault: v1alpha1.FaultNodeLoss,
		needs: needsNodes,
		scene: fleetOf(1, onNodes),
		gauge: ofNodes,
		spec: func(p *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.NodeLoss, spec.Duration = &v1alpha1.NodeLoss{Node: redisPodOf(p).Spec.NodeName}, length(time.Second)
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.NodeLoss = &v1alpha1.NodeLoss{Node: d.text("node-1", "gone", "")}
		},
	},
	{
		name:  "VolumeAttachDelay",
		quick: true,
		fault: v1alpha1.FaultVolumeAttachDelay,
		needs: needsNodes,
		scene: fleetOf(1, onVolume),
		gauge: ofNodes,
		spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
			spec.Duration = length(3 * time.Second)
		},
		wild: func(d draw, a *v1alpha1.Action) {
			a.VolumeAttachDelay = maybe(d, v1alpha1.VolumeAttachDelay{
				KeepAway: pick(d, "", v1alpha1.KeepAwayTaint, v1alpha1.KeepAwayNone),
				Image:    d.text("", "x", "a b"),
			})
		},
	},
	{
		name:  "BackgroundSave",
		fault: v1alpha1.FaultBackgroundSave,
		scene: single(executed("bgsave")),
		spec:  plainSpec,
		wild: func(d draw, a *v1alpha1.Action) {
			a.BackgroundSave = maybe(d, v1alpha1.BackgroundSave{
				Kind: pick(d, "", v1alpha1.SaveSnapshot, v1alpha1.SaveAppendOnlyRewrite),
			})
		},
	},
}

// plantedInPatch is the value of a variable that is secret.
const plantedInPatch = planted + "-variable"

// templatePatch is a patch of the spec of a pod template.
func templatePatch(spec string) *v1alpha1.PodTemplate {
	return &v1alpha1.PodTemplate{Patch: v1alpha1.PodTemplatePatch{Spec: &runtime.RawExtension{Raw: []byte(spec)}}}
}

func plainSpec(*place, *v1alpha1.RedisFaultSpec) {}

// redisPods is a target by its pods' label; the load goes to the addresses.
func redisPods(addresses ...string) v1alpha1.RedisTarget {
	return v1alpha1.RedisTarget{
		Addresses:   addresses,
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
	}
}

// single is the scene of one server in one pod.
func single(broken func(*redisSet) int, options ...string) func(*place) scene {
	return func(p *place) scene {
		set := startRedis(p, options...)
		sc := scene{target: redisPods(set.address()), shows: func() map[string]string { return serverShows(set.address()) }}
		if broken != nil {
			sc.broken = func() int { return broken(set) }
		}
		return sc
	}
}

func podsDeleted(s *redisSet) int { return len(s.podsDeleted()) }

// fleetOf is the scene of a StatefulSet.
func fleetOf(replicas int32, change func(*fleet, *appsv1.StatefulSet)) func(*place) scene {
	return func(p *place) scene {
		f := startFleet(p, replicas, change)
		return scene{target: redisPods(f.address(0)), shows: f.shows, primary: f.primaryOf, asksAPI: true}
	}
}

// watched is the scene of a primary and two replicas that three sentinels watch.
func watched(p *place) scene { return watchedFor(p, 0) }

// patientlyWatched leaves time for a failover while the primary's writes are paused.
func patientlyWatched(p *place) scene { return watchedFor(p, 10*time.Second) }

func watchedFor(p *place, downAfter time.Duration) scene {
	set := redistest.NewSentinel(p.t, 2, redistest.SentinelOptions{DownAfter: downAfter})
	addresses := p.podsOf(set.Servers())
	target := redisPods()
	target.Sentinel = &v1alpha1.SentinelTarget{Addresses: set.SentinelAddresses(), MasterName: redistest.MasterName}
	return scene{
		target: target,
		shows:  func() map[string]string { return serversShow(addresses) },
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
		reply, err := client.Do(ctx, sentinel.Address(), redis.Login{}, "SENTINEL", "MASTER", redistest.MasterName)
		if err != nil {
			continue
		}
		if watched, err := topology.ParseWatched(reply); err == nil {
			latest = max(latest, watched.ConfigEpoch)
		}
	}
	return int(latest)
}

// podsOf creates a pod for each server, and returns the addresses of the servers by pod name.
func (p *place) podsOf(servers []*redistest.Server) map[string]string {
	p.t.Helper()
	addresses := map[string]string{}
	for i, server := range servers {
		name := fmt.Sprintf("redis-%d", i)
		addresses[name] = server.Address()
		p.podAt(name, map[string]string{"app": "redis"}, server.Port)
	}
	return addresses
}

// podAt creates a pod at 127.0.0.1.
func (p *place) podAt(name string, labels map[string]string, port int) {
	p.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: int32(port)}},
		}}},
	}
	p.create(pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}}
	p.mustChange(p.client.Status().Update(context.Background(), pod))
}

// rewritten is the scene of a server whose configuration file is rewritten as soon as a fault has changed hz, as
// Sentinel does.
func rewritten(p *place) scene {
	server := redistest.NewServer(p.t, redistest.Options{})
	addresses := p.podsOf([]*redistest.Server{server})
	rewriteOf(p, server.Address())
	return scene{target: redisPods(server.Address()), shows: func() map[string]string {
		shows := serversShow(addresses)
		file, err := os.ReadFile(configFile(server.Dir))
		shows["hz in the file"] = fmt.Sprint(strings.Contains(string(file), "hz 50"), err)
		return shows
	}}
}

// rewriteOf rewrites the file of a server as soon as a fault has changed hz.
func rewriteOf(p *place, address string) {
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
	p.t.Cleanup(func() {
		stop()
		<-over
		_ = c.Close()
	})
}

// onNodes adds two schedulable nodes to a fleet.
func onNodes(f *fleet, _ *appsv1.StatefulSet) {
	for _, name := range []string{"a", "b"} {
		node := f.namespace + "-" + name
		cluster.NewNode(f.t, f.client, node, map[string]string{placeLabel: f.namespace})
		f.pods.Nodes = append(f.pods.Nodes, node)
	}
}

// onVolume also gives a volume to each pod, which can be attached to one node at a time.
func onVolume(f *fleet, set *appsv1.StatefulSet) {
	onNodes(f, set)
	for i := range 5 {
		f.pods.Volumes = append(f.pods.Volumes,
			cluster.NewVolume(f.t, f.client, f.namespace, fmt.Sprintf("%s-%d", f.namespace, i), fmt.Sprintf("data-redis-%d", i)))
	}
	f.pods.Admit = func(pod *corev1.Pod) { // as of a template of claims
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + pod.Name},
		}}}
		// the server's dir is in it
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: os.TempDir()}}
	}
}

func scales(by int32) func(*place, *v1alpha1.RedisFaultSpec) {
	return func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.ReplicaScale, spec.Duration = &v1alpha1.ReplicaScale{By: by}, length(time.Second)
	}
}

func executed(command string) func(*redisSet) int {
	return func(s *redisSet) int { return calls(s.address(), command) }
}

func slowly(command string) func(*redisSet) int {
	return func(s *redisSet) int { return slow(s.address(), command) }
}

func hangs(method v1alpha1.HangMethod) func(*place, *v1alpha1.RedisFaultSpec) {
	return func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.Hang, spec.Duration = &v1alpha1.Hang{Method: method}, length(1200*time.Millisecond)
	}
}

func serversEnded(s *redisSet) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.killed)
}

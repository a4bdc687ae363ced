package chaosmesh

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// active runs a fault until Chaos Mesh has injected it.
func (b *bench) active() {
	b.World.T.Helper()
	b.preflight()
	b.expectInProgress(faulttest.Called(b.injector().Inject(b.World.T.Context(), b.target)), "")
	b.setStatus(meshtest.Injected)
}

func TestChaosMeshDelayEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, delayed)
		b.active()
		b.effect(v1alpha1.EffectNotObserved, "PING takes")
		b.took = 100 * time.Millisecond
		b.effect(v1alpha1.EffectConfirmed, "shop/redis-0 is Injected")
		b.Servers.Kill(b.target.Address)
		b.effect(v1alpha1.EffectInconclusive, faulttest.ErrRefused.Error())
	})
}

// What chance shows of a setting is proved once; then it counts whether Chaos Mesh holds it.
func TestChaosMeshHoldsASetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := delayed
		spec.Setting, spec.Duration = true, nil
		b := newBench(t, spec)
		held := func(want v1alpha1.Effect, about string) {
			t.Helper()
			if got, evidence := b.injector().(contract.Holder).Held(t.Context(), b.target); got != want ||
				!strings.Contains(evidence, about) {
				t.Errorf("%s (%s), want %s about %q", got, evidence, want, about)
			}
		}
		held(v1alpha1.EffectNotObserved, "there is no NetworkChaos")
		b.active()
		b.effect(v1alpha1.EffectNotObserved, "PING takes")
		held(v1alpha1.EffectConfirmed, "Injected")
		if lasts := b.injector().Traits().Lasts; lasts != v1alpha1.DefaultSettingDuration {
			t.Errorf("it lasts %s", lasts)
		}
	})
}

// A timeout confirms a delay that is not much longer than the timeout.
func TestChaosMeshDelayLongerThanTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for latency, want := range map[time.Duration]v1alpha1.Effect{
			60 * time.Millisecond: v1alpha1.EffectConfirmed,
			5 * time.Second:       v1alpha1.EffectInconclusive,
		} {
			spec := delayed
			spec.Action.NetworkDelay = &v1alpha1.NetworkDelay{
				Latency:   metav1.Duration{Duration: latency},
				Direction: v1alpha1.DirectionOut,
			}
			b := newBench(t, spec)
			b.active()
			b.took, b.answers = 40*time.Millisecond, func(string) (any, error) { return nil, os.ErrDeadlineExceeded }
			b.effect(want, "")
		}
	})
}

func TestChaosMeshLossEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{
				Type:        v1alpha1.FaultNetworkLoss,
				NetworkLoss: &v1alpha1.NetworkLoss{Loss: "10%", Direction: v1alpha1.DirectionOut},
			},
		})
		b.active()
		b.effect(v1alpha1.EffectNotObserved, "none of 20 PINGs")
		n := 0
		b.answers = func(string) (any, error) {
			if n++; n == 7 {
				time.Sleep(200 * time.Millisecond)
			}
			return "PONG", nil
		}
		b.effect(v1alpha1.EffectConfirmed, "one of 7 PINGs took ")
		b.answers = func(string) (any, error) { return nil, os.ErrDeadlineExceeded }
		b.effect(v1alpha1.EffectConfirmed, "no answer")
	})
}

func TestChaosMeshStressEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultCPUStress}})
		b.active()
		b.effect(v1alpha1.EffectInconclusive, "the server gets the CPU that it needs")
		b.took = 5 * time.Millisecond
		b.effect(v1alpha1.EffectConfirmed, "the slowest quarter of 20 PINGs took 5ms at least, before 0s")
	})
}

// A container that has used up its CPU is not served for the rest of a period of 100 ms, and served at once before: PINGs
// one after another meet that rest once at most.
func TestChaosMeshStressByAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 100 * time.Millisecond
		b := newBench(t, v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultCPUStress}})
		b.active()
		for _, test := range []struct {
			throttled time.Duration // at the end of each period
			want      v1alpha1.Effect
		}{
			{10 * time.Millisecond, v1alpha1.EffectInconclusive},
			{50 * time.Millisecond, v1alpha1.EffectConfirmed},
			{80 * time.Millisecond, v1alpha1.EffectConfirmed},
		} {
			start := time.Now()
			b.answers = func(string) (any, error) {
				if in := time.Since(start) % period; in >= period-test.throttled {
					time.Sleep(period - in)
				}
				return "PONG", nil
			}
			b.effect(test.want, "")
		}
	})
}

func TestChaosMeshClockEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, offset := range []time.Duration{-5 * time.Minute, time.Hour} {
			b := newBench(t, v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:      v1alpha1.FaultClockSkew,
					ClockSkew: &v1alpha1.ClockSkew{Offset: metav1.Duration{Duration: offset}},
				},
			})
			ahead := 3 * time.Second // its clock differed from the operator's before
			b.answers = func(string) (any, error) {
				now := time.Now().Add(ahead)
				return []any{fmt.Sprint(now.Unix()), fmt.Sprint(now.Nanosecond() / 1000)}, nil
			}
			b.active()
			b.effect(v1alpha1.EffectNotObserved, "TIME is off by ")
			ahead += offset
			b.effect(v1alpha1.EffectConfirmed, "before by ")
			ahead += offset
			b.effect(v1alpha1.EffectInconclusive, "which is not")
			b.answers = func(string) (any, error) { return []any{"now"}, nil }
			b.effect(v1alpha1.EffectInconclusive, "unexpected reply")
		}
	})
}

func TestChaosMeshDiskEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{
				Type:      v1alpha1.FaultDiskDelay,
				DiskDelay: &v1alpha1.DiskDelay{Delay: metav1.Duration{Duration: 40 * time.Millisecond}, Percent: 100},
			},
		})
		aof, late := "aof_enabled:0\r\n", 3
		b.answers = func(command string) (any, error) {
			switch {
			case command == "CONFIG GET dir":
				return []any{"dir", "/data/redis"}, nil
			case command == "PING":
				return "PONG", nil
			}
			return fmt.Sprintf("# Persistence\r\n%saof_delayed_fsync:%d\r\n", aof, late), nil
		}
		b.active()
		if path := b.field("volumePath"); path != "/data" {
			t.Errorf("it slows %v down, want the mount that holds the server's dir", path)
		}
		b.effect(v1alpha1.EffectInconclusive, "the append-only file is off")
		aof = "aof_enabled:1\r\n"
		b.effect(v1alpha1.EffectInconclusive, "no fsync was late")
		b.took = 40 * time.Millisecond
		b.effect(v1alpha1.EffectConfirmed, "main thread waits")
		b.took, late = 0, 5
		b.effect(v1alpha1.EffectConfirmed, "rose from 3 to 5")
	})
}

func TestChaosMeshDiskPreflight(t *testing.T) {
	spec := func(path string) v1alpha1.RedisFaultSpec {
		return v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{
				Type:      v1alpha1.FaultDiskDelay,
				DiskDelay: &v1alpha1.DiskDelay{Delay: metav1.Duration{Duration: time.Second}, VolumePath: path},
			},
		}
	}
	b := newBench(t, spec("/elsewhere"))
	if problem := faulttest.ProblemOf(t, b.injector().Preflight(t.Context(), b.target)); !problem.Lasting ||
		!strings.Contains(problem.Message, "mounts nothing at /elsewhere, but at: /, /data, /etc/redis") {
		t.Errorf("%+v", problem)
	}
	b = newBench(t, spec(""))
	b.target.Container = "sidecar"
	b.answers = func(string) (any, error) { return []any{"dir", "/data"}, nil }
	if problem := faulttest.ProblemOf(t, b.injector().Preflight(t.Context(), b.target)); !problem.Lasting ||
		!strings.Contains(problem.Message, "/data is on no volume of container sidecar") {
		t.Errorf("%+v", problem)
	}
}

// What a primary reports about its clients and replicas. The load is at 10.0.0.8, a sentinel at 10.0.0.7, replicas at
// .2 and .3; the operator at .9.
const (
	clientList = "id=3 addr=10.0.0.8:40000 laddr=10.0.0.1:6379 fd=8 name= age=9 idle=%[1]d flags=N db=0 cmd=set\n" +
		"id=4 addr=10.0.0.8:40001 laddr=10.0.0.1:6379 fd=9 name= age=9 idle=700 flags=N db=0 cmd=get\n" +
		"id=5 addr=10.0.0.2:40000 laddr=10.0.0.1:6379 fd=10 name= age=9 idle=0 flags=S db=0 cmd=replconf\n" +
		"id=6 addr=10.0.0.7:40000 laddr=10.0.0.1:6379 fd=11 name=sentinel-0a1b2c3d-cmd age=9 idle=%[1]d flags=N db=0 cmd=ping\n" +
		"id=7 addr=10.0.0.7:40001 laddr=10.0.0.1:6379 fd=12 name=sentinel-0a1b2c3d-pubsub age=9 idle=0 flags=P db=0 cmd=subscribe\n" +
		"id=8 addr=10.0.0.9:40000 laddr=10.0.0.1:6379 fd=13 name= age=9 idle=0 flags=N db=0 cmd=client|list\n"
	infoReplication = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n" +
		"slave0:ip=10.0.0.2,port=6379,state=online,offset=70,lag=%[1]d\r\n" +
		"slave1:ip=10.0.0.3,port=6379,state=online,offset=70,lag=%[1]d\r\nslave_read_only:1\r\n"
)

// neighbours creates the other pods that a partitioned primary is connected to.
func neighbours(b *bench) {
	b.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	b.Pod("redis-2", "u2", "10.0.0.3", topology.Replica, nil)
	b.Pod("sentinel-0", "s0", "10.0.0.7", topology.Sentinel, nil)
	b.Pod("run-0", "l0", "10.0.0.8", "", func(p *corev1.Pod) {
		p.Labels = map[string]string{
			v1alpha1.LabelLoadTest: "run",
		}
	})
	b.Pod("run-1", "l1", "10.0.0.10", "", func(p *corev1.Pod) {
		p.Labels = map[string]string{v1alpha1.LabelLoadTest: "run"}
		p.Status.Phase = corev1.PodSucceeded
	})
}

func TestChaosMeshPartition(t *testing.T) {
	for _, test := range []struct {
		from    v1alpha1.NetworkPeer
		pods    []any // in the child's target; nil = by label
		hearing string
	}{
		{v1alpha1.PeerClients, nil, "before on 1"},
		{v1alpha1.PeerServers, []any{"redis-1", "redis-2"}, "before on 2"},
		{v1alpha1.PeerReplicas, []any{"redis-1", "redis-2"}, "before on 2"},
		{v1alpha1.PeerSentinels, []any{"sentinel-0"}, "before on 1"},
	} {
		t.Run(string(test.from), func(t *testing.T) {
			b := newBench(t, v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{
					Type:             v1alpha1.FaultNetworkPartition,
					NetworkPartition: &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{test.from}, Direction: v1alpha1.DirectionBoth},
				},
			})
			neighbours(b)
			quiet := 0
			b.answers = func(command string) (any, error) {
				if command == "CLIENT LIST" {
					return fmt.Sprintf(clientList, quiet), nil
				}
				return fmt.Sprintf(infoReplication, quiet), nil
			}
			if !b.injector().Traits().Silences {
				t.Error("the guard does not count a disconnected server")
			}
			b.active()
			pods, _ := b.field("target", "selector", "pods", faulttest.Namespace).([]any)
			label := b.field("target", "selector", "labelSelectors", v1alpha1.LabelLoadTest)
			if fmt.Sprint(pods) != fmt.Sprint(test.pods) || (label == "run") != (test.pods == nil) {
				t.Errorf("the other end is %v", b.field("target", "selector"))
			}
			b.effect(v1alpha1.EffectNotObserved, test.hearing)
			quiet = 3 // seconds, from which the server does not hear them any more
			b.effect(v1alpha1.EffectConfirmed, "on 0 connections of the server, "+test.hearing)
		})
	}
}

// Without peers Chaos Mesh would wait, and a partition without peers would disconnect the pod from the kubelet.
func TestChaosMeshNoPeers(t *testing.T) {
	for _, from := range []v1alpha1.NetworkPeer{
		v1alpha1.PeerClients, v1alpha1.PeerServers, v1alpha1.PeerReplicas,
		v1alpha1.PeerPrimary, v1alpha1.PeerSentinels,
	} {
		b := newBench(t, v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{
				Type:             v1alpha1.FaultNetworkPartition,
				NetworkPartition: &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{from}, Direction: v1alpha1.DirectionBoth},
			},
		})
		b.answers = func(string) (any, error) { return "", nil }
		problem := faulttest.ProblemOf(t, b.injector().Preflight(t.Context(), b.target))
		if problem.Reason != v1alpha1.ReasonNoTarget ||
			!strings.Contains(problem.Message, "spec.action.networkPartition.peers: there are no "+string(from)) {
			t.Errorf("%+v", problem)
		}
	}
}

// A replica receives data from its primary, though with pauses of up to 10 s.
func TestChaosMeshPartitionFromPrimary(t *testing.T) {
	b := newBench(t, v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:             v1alpha1.FaultNetworkPartition,
			NetworkPartition: &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerPrimary}, Direction: v1alpha1.DirectionBoth},
		},
	})
	b.Servers.Change(b.target.Address, func(s *memredis.State) { s.Primary = "10.0.0.2:6379" })
	b.Pod("redis-1", "u1", "10.0.0.2", topology.Primary, nil)
	b.Pod("redis-2", "u2", "10.0.0.3", topology.Replica, nil)
	quiet := 9
	b.answers = func(command string) (any, error) {
		if command == "CLIENT LIST" {
			return fmt.Sprintf("id=3 addr=10.0.0.2:6379 laddr=10.0.0.1:40000 fd=8 name= age=9 idle=%d flags=M db=0 cmd=ping\n",
				quiet), nil
		}
		return "role:slave\r\nmaster_link_status:up\r\nslave_read_only:1\r\nconnected_slaves:0\r\n", nil
	}
	b.active()
	if peers := faulttest.Recorded[chaosRecord](t, b.target).Peers; len(peers) != 1 || peers["redis-1"] != "10.0.0.2" {
		t.Errorf("the peers are %v", peers)
	}
	b.effect(v1alpha1.EffectNotObserved, "on 1 connections")
	quiet = 12
	b.effect(v1alpha1.EffectConfirmed, "on 0 connections")
}

// Neither peers without earlier traffic nor delays between other pods can be confirmed.
func TestChaosMeshInconclusiveEffect(t *testing.T) {
	b := newBench(t, v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:             v1alpha1.FaultNetworkPartition,
			NetworkPartition: &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerServers}, Direction: v1alpha1.DirectionBoth},
		},
	})
	neighbours(b)
	b.answers = func(string) (any, error) { return "", nil }
	b.active()
	b.effect(v1alpha1.EffectInconclusive, "none of the Servers was active")

	spec := delayed
	spec.Action.NetworkDelay = &v1alpha1.NetworkDelay{
		Latency:   metav1.Duration{Duration: time.Second},
		Direction: v1alpha1.DirectionBoth,
		Peers:     []v1alpha1.NetworkPeer{v1alpha1.PeerReplicas},
	}
	b = newBench(t, spec)
	neighbours(b)
	b.active()
	b.effect(v1alpha1.EffectInconclusive, "cannot be measured by the operator")
}

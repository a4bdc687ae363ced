package network_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/network"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/netfaulttest"
)

// bench is a fault on the primary redis-0, which has two replicas, a sentinel at 10.0.0.7 and a client at 10.0.0.8.
type bench struct {
	*faulttest.World
	pods   *netfaulttest.Pods
	spec   *v1alpha1.RedisFaultSpec
	target *v1alpha1.FaultTarget
}

const clients = "id=3 addr=10.0.0.8:40000 laddr=10.0.0.1:6379 fd=8 name= age=9 idle=0 flags=N db=0 cmd=set\n" +
	"id=6 addr=10.0.0.7:40000 laddr=10.0.0.1:6379 fd=11 name=sentinel-0a1b2c3d-cmd age=9 idle=0 flags=N db=0 cmd=ping\n"

func newBench(t *testing.T, action v1alpha1.Action) *bench {
	t.Helper()
	b := &bench{World: faulttest.NewWorld(t), spec: &v1alpha1.RedisFaultSpec{
		Action:   action,
		Duration: &metav1.Duration{Duration: time.Minute},
	}}
	b.pods = netfaulttest.NewPods(b.Cluster)
	b.Hooks.SubResourcePatch = func(ctx context.Context, _ client.Client, _ string, object client.Object,
		patch client.Patch, options ...client.SubResourcePatchOption,
	) error {
		var given client.SubResourcePatchOptions
		given.ApplyOptions(options)
		return b.pods.Add(ctx, object, patch, len(given.DryRun) > 0)
	}
	for i, role := range []topology.Role{topology.Primary, topology.Replica, topology.Replica} {
		b.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
	}
	b.Bystander("sentinel-0", "10.0.0.7")
	b.Bystander("run-0", "10.0.0.8")
	b.Servers.Script("CLIENT LIST", faulttest.Reply(clients))
	b.target = &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379"}
	return b
}

func partition(peers ...v1alpha1.NetworkPeer) v1alpha1.Action {
	return v1alpha1.Action{
		Type:             v1alpha1.FaultNetworkPartition,
		NetworkPartition: &v1alpha1.NetworkPartition{Peers: peers, Direction: v1alpha1.DirectionBoth},
	}
}

// injector is a new one, without state in memory.
func (b *bench) injector() contract.Injector {
	b.T.Helper()
	deps := b.Deps()
	deps.Spec, deps.Programs, deps.Image = faulttest.ByPods(map[string]string{"app": "redis"}), b.pods, "redquake:dev"
	deps.Owner.UID = "fault-uid"
	injector, err := network.Kinds.For(b.spec, deps)
	faulttest.Must(b.T, err)
	return injector
}

// start is the kubelet.
func (b *bench) start() {
	b.T.Helper()
	pod := b.PodNamed("redis-0")
	if netfaulttest.Start(pod) {
		b.Update(pod, func(*corev1.Pod) {})
	}
}

func (b *bench) inject() {
	b.T.Helper()
	faulttest.Must(b.T, b.injector().Preflight(b.T.Context(), b.target))
	for {
		progress, err := b.injector().Inject(b.T.Context(), b.target)
		faulttest.Must(b.T, err)
		if progress.Complete() {
			return
		}
		b.start()
	}
}

func (b *bench) renew() error {
	b.T.Helper()
	return b.injector().(contract.Renewer).Renew(b.T.Context(), b.target)
}

func (b *bench) drops(want string) {
	b.T.Helper()
	if got := strings.Join(b.pods.InForce(faulttest.Namespace), "; "); (want == "") != (got == "") || !strings.HasSuffix(got, want) {
		b.T.Errorf("dropped: %q, want %q", got, want)
	}
}

func (b *bench) effect(want v1alpha1.Effect, about string) {
	b.T.Helper()
	if got, evidence := b.injector().Effect(b.T.Context(), b.target); got != want || !strings.Contains(evidence, about) {
		b.T.Errorf("%s (%s), want %s about %q", got, evidence, want, about)
	}
}

// Whose packets are dropped, by the names of the peers. The node is always spared, and with clients the Redis as well.
func TestPeers(t *testing.T) {
	for name, tc := range map[string]struct {
		action v1alpha1.Action
		want   string
	}{
		"replicas": {
			partition(v1alpha1.PeerReplicas),
			"in true, out true, except false, share 10000, peers 10.0.0.2 10.0.0.3",
		},
		"sentinels": {
			partition(v1alpha1.PeerSentinels),
			"in true, out true, except false, share 10000, peers 10.0.0.7",
		},
		"replicas and sentinels": {
			partition(v1alpha1.PeerReplicas, v1alpha1.PeerSentinels),
			"in true, out true, except false, share 10000, peers 10.0.0.2 10.0.0.3 10.0.0.7",
		},
		"all": {
			partition(v1alpha1.PeerAll),
			"in true, out true, except true, share 10000, peers 10.0.1.1",
		},
		"a tenth of all": {
			v1alpha1.Action{
				Type:        v1alpha1.FaultNetworkLoss,
				NetworkLoss: &v1alpha1.NetworkLoss{Loss: "10%", Direction: v1alpha1.DirectionIn},
			},
			"in true, out false, except true, share 1000, peers 10.0.1.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.action)
			b.inject()
			b.drops(tc.want)
		})
	}
	t.Run("clients", func(t *testing.T) {
		b := newBench(t, partition(v1alpha1.PeerClients))
		b.inject()
		got := b.pods.InForce(faulttest.Namespace)
		for _, spared := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.7", "10.0.1.1"} {
			if len(got) != 1 || !strings.Contains(got[0], "except true") || !strings.Contains(got[0], spared) ||
				strings.Contains(got[0], "10.0.0.8") {
				t.Errorf("%q does not spare %s alone", got, spared)
			}
		}
	})
	t.Run("clients and replicas", func(t *testing.T) {
		b := newBench(t, partition(v1alpha1.PeerClients, v1alpha1.PeerReplicas))
		b.inject()
		got := b.pods.InForce(faulttest.Namespace)
		if len(got) != 1 || !strings.Contains(got[0], "10.0.0.7") || strings.Contains(got[0], "10.0.0.2") {
			t.Errorf("%q spares more than the sentinel", got)
		}
	})
}

// The rules end by themselves, unless they are renewed; what has ended stays so.
func TestEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, partition(v1alpha1.PeerReplicas))
		b.inject()
		b.effect(v1alpha1.EffectConfirmed, "the kernel has dropped ")
		for range 10 {
			time.Sleep(2 * time.Second)
			faulttest.Must(t, b.renew())
			b.drops("peers 10.0.0.2 10.0.0.3")
		}
		time.Sleep(10 * time.Second)
		b.drops("")
		b.effect(v1alpha1.EffectNotObserved, "were not renewed in time")
		faulttest.Must(t, b.renew())
		b.drops("")
		if begun, err := b.injector().Begun(t.Context(), b.target); !begun || err != nil {
			t.Errorf("begun %t, %v", begun, err)
		}
		progress, err := b.injector().Revert(t.Context(), b.target)
		if err != nil || !progress.Complete() {
			t.Errorf("revert: %+v, %v", progress, err)
		}
		b.effect(v1alpha1.EffectNotObserved, "has no such rules")
	})
}

// A renewal by an operator that does not know of the revert sets nothing.
func TestRenewalAfterTheRevert(t *testing.T) {
	b := newBench(t, partition(v1alpha1.PeerReplicas))
	b.inject()
	progress, err := b.injector().Revert(t.Context(), b.target)
	if err != nil || !progress.Complete() {
		t.Fatalf("revert: %+v, %v", progress, err)
	}
	faulttest.Must(t, b.renew())
	b.drops("")
}

// A peer that is replaced under its name is hit at its new address; a server that joins is spared where clients are
// cut off.
func TestAddressesAreFollowed(t *testing.T) {
	b := newBench(t, partition(v1alpha1.PeerReplicas))
	b.inject()
	b.Update(b.PodNamed("redis-2"), func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.33" })
	faulttest.Must(t, b.renew())
	b.drops("peers 10.0.0.2 10.0.0.33")
	b.Update(b.PodNamed("redis-2"), func(p *corev1.Pod) { p.Status.PodIP = "" }) // it starts
	faulttest.Must(t, b.renew())
	b.drops("peers 10.0.0.2 10.0.0.3")

	b = newBench(t, partition(v1alpha1.PeerClients))
	b.inject()
	b.Pod("redis-3", "u3", "10.0.0.4", topology.Replica, nil)
	faulttest.Must(t, b.renew())
	if got := b.pods.InForce(faulttest.Namespace); !strings.Contains(got[0], "10.0.0.4") {
		t.Errorf("%q does not spare the new replica", got)
	}
}

// What cannot be is refused before anything is changed, with the reason.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(b *bench)
		action v1alpha1.Action
		says   string
		waits  bool
	}{
		"the network of the node": {
			change: func(b *bench) { b.change(func(p *corev1.Pod) { p.Spec.HostNetwork = true }) },
			says:   "spec.hostNetwork: its network is that of node node-1",
		},
		"Windows": {
			change: func(b *bench) { b.change(func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }) },
			says:   "runs on windows",
		},
		"Pod Security": {
			change: func(b *bench) {
				b.pods.Refuse = apierrors.NewForbidden(corev1.Resource("pods"), "redis-0",
					errors.New(`violates PodSecurity "restricted:latest"`))
			},
			says: `violates PodSecurity "restricted:latest". Namespace shop must admit the capability NET_ADMIN`,
		},
		"no such peer": {
			action: partition(v1alpha1.PeerPrimary),
			says:   "spec.action.networkPartition.peers: there are no Primary to pod redis-0",
			waits:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.action.Type == "" {
				tc.action = partition(v1alpha1.PeerReplicas)
			}
			b := newBench(t, tc.action)
			if tc.change != nil {
				tc.change(b)
			}
			p := faulttest.ProblemOf(t, b.injector().Preflight(t.Context(), b.target))
			if p.Lasting == tc.waits || !strings.Contains(p.Message, tc.says) {
				t.Errorf("%+v, want %q", p, tc.says)
			}
			if n := len(b.PodNamed("redis-0").Spec.EphemeralContainers); n > 0 {
				t.Errorf("%d containers were added", n)
			}
		})
	}
}

// change changes the specification of the target's pod.
func (b *bench) change(change func(*corev1.Pod)) {
	b.T.Helper()
	pod := b.PodNamed("redis-0")
	change(pod)
	faulttest.Must(b.T, b.Cluster.Update(b.T.Context(), pod))
}

// One container serves all faults of a pod; another one is added only where it has ended.
func TestContainers(t *testing.T) {
	b := newBench(t, partition(v1alpha1.PeerReplicas))
	b.inject()
	b.inject()
	if all := b.PodNamed("redis-0").Spec.EphemeralContainers; len(all) != 1 || all[0].Image != "redquake:dev" {
		t.Fatalf("containers %+v", all)
	}
	b.Update(b.PodNamed("redis-0"), func(p *corev1.Pod) {
		p.Status.EphemeralContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	})
	b.effect(v1alpha1.EffectNotObserved, "no container of ours runs")
	if err := b.renew(); err == nil || !strings.Contains(err.Error(), "no container of ours") {
		t.Errorf("renewed: %v", err)
	}
	b.inject()
	if all := b.PodNamed("redis-0").Spec.EphemeralContainers; len(all) != 2 || all[0].Name == all[1].Name {
		t.Fatalf("containers %+v", all)
	}
}

// A container whose image is not there is an error that names the reason, and one that starts is waited for.
func TestContainerThatDoesNotStart(t *testing.T) {
	b := newBench(t, partition(v1alpha1.PeerReplicas))
	faulttest.Must(t, b.injector().Preflight(t.Context(), b.target))
	for _, reason := range []string{"", "ContainerCreating", "ImagePullBackOff"} {
		progress, err := b.injector().Inject(t.Context(), b.target)
		if progress.Stage != contract.StagePreparing || err != nil {
			t.Fatalf("%+v, %v", progress, err)
		}
		b.Update(b.PodNamed("redis-0"), func(p *corev1.Pod) {
			p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{
				Name:  "redquake-network-0",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no such image"}},
			}}
		})
	}
	if _, err := b.injector().Inject(t.Context(), b.target); err == nil ||
		!strings.Contains(err.Error(), "does not start: ImagePullBackOff: no such image") {
		t.Errorf("%v", err)
	}
}

// Where the program cannot be reached, the fault counts as reverted when the kernel has certainly lifted it: no earlier,
// and without an end of that.
func TestRevertWithoutTheContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, partition(v1alpha1.PeerReplicas))
		b.inject()
		b.pods.Refuse = errors.New("the kubelet does not answer")
		began := time.Now()
		for {
			progress, err := b.injector().Revert(t.Context(), b.target)
			faulttest.Must(t, err)
			if progress.Complete() {
				break
			}
			if !strings.Contains(progress.Message, "the kernel lifts the rules in pod redis-0 by ") {
				t.Fatalf("%+v", progress)
			}
			time.Sleep(time.Second)
		}
		b.drops("")
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// A call that was held up on its way sets nothing any more: neither after the revert, nor where the kernel has lifted
// the rules of a process that ended before it could store that it had set them.
func TestLateInjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, partition(v1alpha1.PeerReplicas))
		b.inject()
		time.Sleep(11 * time.Second)
		progress, err := b.injector().Inject(t.Context(), b.target)
		if err != nil || !progress.Complete() {
			t.Errorf("after the end: %+v, %v", progress, err)
		}
		b.drops("")
		if progress, err := b.injector().Revert(t.Context(), b.target); err != nil || !progress.Complete() {
			t.Errorf("revert: %+v, %v", progress, err)
		}
		if _, err := b.injector().Inject(t.Context(), b.target); err == nil ||
			!strings.Contains(err.Error(), "were released meanwhile") {
			t.Errorf("after the revert: %v", err)
		}
		b.drops("")
		b.inject() // by another record
		b.drops("peers 10.0.0.2 10.0.0.3")
	})
}

// Peers whose packets are those of their node are refused, and one that is gone is not hit at its former address, which
// another pod may have.
func TestPeersThatAreNoneAnyMore(t *testing.T) {
	b := newBench(t, partition(v1alpha1.PeerSentinels))
	b.inject()
	b.drops("peers 10.0.0.7")
	faulttest.Must(t, b.Cluster.Delete(t.Context(), b.PodNamed("sentinel-0")))
	b.Pod("sentinel-0", "s1", "10.0.0.17", "", nil)
	faulttest.Must(t, b.renew())
	b.drops("peers 10.0.0.17")

	b = newBench(t, partition(v1alpha1.PeerReplicas))
	pod := b.PodNamed("redis-2")
	pod.Spec.HostNetwork = true
	faulttest.Must(t, b.Cluster.Update(t.Context(), pod))
	if p := faulttest.ProblemOf(t, b.injector().Preflight(t.Context(), b.target)); !p.Lasting ||
		!strings.Contains(p.Message, "peers: pod redis-2 has spec.hostNetwork") {
		t.Errorf("%+v", p)
	}
}

// That the container could not be reached by a step back before the injection says nothing of the rules that are in force
// now: the revert waits for the kernel.
func TestRevertWaitsForTheKernelAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, partition(v1alpha1.PeerReplicas))
		b.inject()
		b.Update(b.PodNamed("redis-0"), func(p *corev1.Pod) {
			p.Status.EphemeralContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		})
		if progress, err := b.injector().Revert(t.Context(), b.target); err != nil || progress.Complete() {
			t.Fatalf("%+v, %v", progress, err)
		}
		time.Sleep(time.Minute)
		b.start()
		b.inject()
		b.target.InjectedAt = new(metav1.NowMicro())
		time.Sleep(time.Second)
		b.pods.Refuse = errors.New("the kubelet does not answer")
		if progress, err := b.injector().Revert(t.Context(), b.target); err != nil || progress.Complete() {
			t.Errorf("it counts as reverted at once: %+v, %v", progress, err)
		}
	})
}

func delay() v1alpha1.Action {
	return v1alpha1.Action{Type: v1alpha1.FaultNetworkDelay, NetworkDelay: &v1alpha1.NetworkDelay{
		Latency:   metav1.Duration{Duration: 50 * time.Millisecond},
		Direction: v1alpha1.DirectionOut,
		Peers:     []v1alpha1.NetworkPeer{v1alpha1.PeerReplicas},
	}}
}

// A delay is held by the same rules, which delay instead of dropping.
func TestDelay(t *testing.T) {
	b := newBench(t, delay())
	b.inject()
	b.drops("out true, except false, share 10000, peers 10.0.0.2 10.0.0.3, delayed by 50ms")
	if d := b.injector().Describe(b.target); !strings.HasPrefix(d.Action, "delay by 50ms all packets to redis-1, redis-2 in pod redis-0") {
		t.Errorf("described as %q", d.Action)
	}
	if effect, evidence := b.injector().Effect(t.Context(), b.target); effect != v1alpha1.EffectConfirmed ||
		!strings.Contains(evidence, "the kernel has delayed ") {
		t.Errorf("%s: %s", effect, evidence)
	}
	faulttest.Must(t, b.renew())
	faulttest.Must(t, faulttest.Called(b.injector().Revert(t.Context(), b.target)))
	b.drops("")
}

// A kernel that cannot delay packets is found out before anything is broken.
func TestDelayWithoutNetem(t *testing.T) {
	b := newBench(t, delay())
	b.pods.Unsupported = "the kernel has no sch_netem"
	faulttest.Must(t, b.injector().Preflight(t.Context(), b.target))
	prepare := func() (contract.Progress, error) {
		return b.injector().(contract.Preparer).Prepare(t.Context(), b.target)
	}
	if progress, err := prepare(); err != nil || progress.Complete() {
		t.Fatalf("%+v, %v before the container runs", progress, err)
	}
	b.start()
	_, err := prepare()
	p := faulttest.ProblemOf(t, err)
	const want = "spec.action.networkDelay: packets of pod redis-0 cannot be delayed on node node-1: the kernel has no sch_netem"
	if !p.Lasting || p.Message != want {
		t.Errorf("%+v, want %s", p, want)
	}
	b.drops("")
}

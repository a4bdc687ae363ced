//go:build integration

package stage

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/diskfilltest"
	"github.com/redquake/redquake/internal/testing/meshtest"
	"github.com/redquake/redquake/internal/testing/netfaulttest"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// networkKinds are those that drop packets in pods. Their programs are run by a kubelet, through a
// real API server; the rules are in the memory of this process, as in a kernel that outlives the
// operator.
var networkKinds = []Kind{
	{
		Name:  "NetworkPartition",
		Quick: true,
		Fault: v1alpha1.FaultNetworkPartition,
		needs: NeedsNetwork,
		On:    NewNetworkPlace,
		Scene: networked,
		gauge: ofNetwork,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.NetworkPartition = &v1alpha1.NetworkPartition{
				Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerClients},
			}
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.NetworkPartition = &v1alpha1.NetworkPartition{
				Peers:     drawPeers(d),
				Direction: drawDirection(d),
			}
		},
	},
	{
		Name:  "NetworkLoss",
		Fault: v1alpha1.FaultNetworkLoss,
		needs: NeedsNetwork,
		On:    NewNetworkPlace,
		Scene: networked,
		gauge: ofNetwork,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.NetworkLoss = &v1alpha1.NetworkLoss{Loss: "25%"}
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.NetworkLoss = &v1alpha1.NetworkLoss{
				Loss:      Pick(d, v1alpha1.Percentage("0%"), "0.01%", "25%", "100%", "101%"),
				Peers:     drawPeers(d),
				Direction: drawDirection(d),
			}
		},
	},
	{
		Name:  "NetworkDelay",
		Fault: v1alpha1.FaultNetworkDelay,
		needs: NeedsNetwork,
		On:    NewNetworkPlace,
		Scene: networked,
		gauge: ofNetwork,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.NetworkDelay = &v1alpha1.NetworkDelay{Latency: *operatortest.Length(50 * time.Millisecond)}
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.NetworkDelay = &v1alpha1.NetworkDelay{
				Latency: *operatortest.Length(Pick(d, time.Millisecond, 50*time.Millisecond, time.Second, 10*time.Second, time.Minute)),
				Jitter:  Maybe(d, *operatortest.Length(time.Millisecond)),
				Peers: Pick(d, nil, []v1alpha1.NetworkPeer{v1alpha1.PeerClients}, []v1alpha1.NetworkPeer{v1alpha1.PeerSentinels},
					[]v1alpha1.NetworkPeer{v1alpha1.PeerClients, v1alpha1.PeerReplicas}, []v1alpha1.NetworkPeer{v1alpha1.PeerAll}),
				Direction: Pick(d, "", "", v1alpha1.DirectionOut, v1alpha1.DirectionIn),
			}
		},
	},
}

func drawPeers(d Draw) []v1alpha1.NetworkPeer {
	return Pick(d, nil, []v1alpha1.NetworkPeer{},
		[]v1alpha1.NetworkPeer{v1alpha1.PeerClients},
		[]v1alpha1.NetworkPeer{v1alpha1.PeerAll},
		[]v1alpha1.NetworkPeer{v1alpha1.PeerReplicas, v1alpha1.PeerSentinels},
		[]v1alpha1.NetworkPeer{"Nobody"})
}

func drawDirection(d Draw) v1alpha1.NetworkDirection {
	return Pick(d, "", v1alpha1.DirectionIn, v1alpha1.DirectionOut, v1alpha1.DirectionBoth, "Up")
}

// networkServer is a second kube-apiserver, with the kinds of Chaos Mesh and with nodes whose kubelet
// runs programs in their pods, which the first one must not have: nodes belong to no test. It is
// started on first use and ends with the process.
var networkServer struct {
	once    sync.Once
	env     *envtest.Environment
	pods    *netfaulttest.Pods
	to      client.WithWatch
	kubelet corev1.NodeStatus // where it is reached
	err     error
}

func startNetworkServer(crds []string) (err error) {
	of := &networkServer
	if of.env, err = cluster.StartControlPlane(crds...); err != nil {
		return err
	}
	if of.to, err = client.NewWithWatch(of.env.Config, client.Options{
		Scheme: controllers.NewScheme(),
	}); err != nil {
		return err
	}
	of.pods = netfaulttest.NewPods(of.to)
	of.pods.Other = diskfilltest.New(of.to)
	if of.kubelet, err = of.pods.ServeExec(); err != nil {
		return err
	}
	return of.to.Create(context.Background(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: operatortest.RedisNode},
	})
}

// stopNetworkServer stops it if it was started.
func stopNetworkServer() error {
	if networkServer.env == nil {
		return nil
	}
	return networkServer.env.Stop()
}

// NewNetworkPlace returns a namespace on that API server, which starts with the first of them.
func NewNetworkPlace(t *testing.T) *operatortest.Place {
	t.Helper()
	crds := meshtest.CRDs(t)
	networkServer.once.Do(func() { networkServer.err = startNetworkServer(crds) })
	if networkServer.err != nil {
		t.Fatal(networkServer.err)
	}
	return operatortest.NewPlaceOn(t, networkServer.env.Config, networkServer.to)
}

// networked is the scene of one server that shows what is dropped in its pod.
func networked(p *operatortest.Place) Scene {
	sc := Single(nil)(p)
	StartEphemeral(p)
	shows := sc.Shows
	sc.Shows = func() map[string]string {
		all := shows()
		maps.Copy(all, dropped(p))
		return all
	}
	return sc
}

// StartEphemeral starts what runs programs in the pods of a place on NewNetworkPlace: a kubelet that
// starts ephemeral containers, for one fault each.
func StartEphemeral(p *operatortest.Place) {
	p.StandIn("a kubelet that starts ephemeral containers", p.LookEvery, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := p.Client.List(ctx, &pods, client.InNamespace(p.Namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Spec.NodeName == "" {
				continue // the scheduler's
			}
			if err := reachKubelet(ctx, p, pod.Spec.NodeName); err != nil {
				return err
			}
			ended := networkServer.pods.Stop(pod, time.Second)
			if netfaulttest.Start(pod) || ended {
				if err := p.Client.Status().Update(ctx, pod); err != nil {
					return err
				}
			}
		}
		return nil
	}, &corev1.PodList{})
}

// reachKubelet has the API server reach the kubelet of a node.
func reachKubelet(ctx context.Context, p *operatortest.Place, name string) error {
	node := &corev1.Node{}
	err := p.Client.Get(ctx, client.ObjectKey{Name: name}, node)
	if err != nil || len(node.Status.Addresses) > 0 {
		return client.IgnoreNotFound(err)
	}
	before := node.DeepCopy()
	node.Status.Addresses = networkServer.kubelet.Addresses
	node.Status.DaemonEndpoints = networkServer.kubelet.DaemonEndpoints
	return p.Client.Status().Patch(ctx, node, client.MergeFrom(before))
}

// dropped is what is dropped in the pods of the place.
func dropped(p *operatortest.Place) map[string]string {
	return map[string]string{"packets": strings.Join(networkServer.pods.InForce(p.Namespace), "; ")}
}

func ofNetwork(s *Stage) Gauge {
	return Gauge{byNetwork, func() map[string]string { return dropped(s.Place) }, false}
}

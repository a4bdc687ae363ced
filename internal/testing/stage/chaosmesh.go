//go:build integration

package stage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/crashtest"
	"github.com/redquake/redquake/internal/testing/meshtest"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// meshKinds are those that Chaos Mesh injects. A stand-in replaces its controller: it deletes pods,
// and has no other effect.
var meshKinds = []Kind{
	{
		Name:  "PodKill by Chaos Mesh",
		Quick: true,
		Fault: v1alpha1.FaultPodKill,
		needs: NeedsMesh,
		On:    NewMeshPlace,
		Scene: Meshed(PodsDeleted),
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		}),
	},
	{
		Name:  "NetworkDelay",
		Fault: v1alpha1.FaultNetworkDelay,
		needs: NeedsMesh,
		On:    NewMeshPlace,
		Scene: Meshed(nil),
		Fades: true,
		Spec:  byMesh(delays),
	},
	{
		Name:  "NetworkLoss by Chaos Mesh",
		Fault: v1alpha1.FaultNetworkLoss,
		needs: NeedsMesh,
		On:    NewMeshPlace,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.NetworkLoss = &v1alpha1.NetworkLoss{Loss: "25%", Direction: v1alpha1.DirectionOut}
		}),
	},
	{
		Name:  "NetworkPartition by Chaos Mesh",
		Fault: v1alpha1.FaultNetworkPartition,
		needs: NeedsMesh,
		On:    NewMeshPlace,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.NetworkPartition = &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerClients}}
		}),
	},
	{
		Name:  "DiskDelay",
		Fault: v1alpha1.FaultDiskDelay,
		needs: NeedsMesh,
		On:    NewMeshPlace,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.DiskDelay = &v1alpha1.DiskDelay{Delay: *operatortest.Length(time.Second)}
		}),
	},
	{
		Name:  "CPUStress",
		Fault: v1alpha1.FaultCPUStress,
		needs: NeedsMesh,
		On:    NewMeshPlace,
		Scene: Meshed(nil),
		Fades: true,
		Spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.CPUStress = &v1alpha1.CPUStress{Workers: 1, Load: 50}
		}),
	},
	{
		Name:  "ClockSkew",
		Fault: v1alpha1.FaultClockSkew,
		needs: NeedsMesh,
		On:    NewMeshPlace,
		Scene: Meshed(nil),
		Fades: true,
		Spec:  byMesh(Skews),
	},
}

func delays(s *v1alpha1.RedisFaultSpec) {
	s.Action.NetworkDelay = &v1alpha1.NetworkDelay{
		Latency: *operatortest.Length(100 * time.Millisecond),
	}
}

// Skews sets the clock back by an hour.
func Skews(s *v1alpha1.RedisFaultSpec) {
	s.Action.ClockSkew = &v1alpha1.ClockSkew{Offset: *operatortest.Length(-time.Hour)}
}

func byMesh(
	change func(*v1alpha1.RedisFaultSpec),
) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return ByMeshFor(time.Second, change)
}

// ByMeshFor is the spec of a fault that Chaos Mesh injects, for so long.
func ByMeshFor(
	lasts time.Duration, change func(*v1alpha1.RedisFaultSpec),
) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		spec.Engine = v1alpha1.EngineChaosMesh
		if spec.Action.Type != v1alpha1.FaultPodKill {
			spec.Duration = operatortest.Length(lasts)
		}
		change(spec)
	}
}

// Meshed is the scene of one server that Chaos Mesh can reach.
func Meshed(broken func(*operatortest.RedisSet) int) func(*operatortest.Place) Scene {
	one := Single(broken)
	return func(p *operatortest.Place) Scene {
		sc := one(p)
		StartMesh(p)
		return sc
	}
}

// meshServer is a second kube-apiserver with Chaos Mesh's kinds, which the first one must not have.
// It is started on first use and ends with the process.
var meshServer struct {
	once sync.Once
	apiServerOfMesh
	err error
}

type apiServerOfMesh struct {
	env    *envtest.Environment
	client client.WithWatch
}

func startMeshServer(crds []string) (apiServerOfMesh, error) {
	env, err := cluster.StartControlPlane(crds...)
	if err != nil {
		return apiServerOfMesh{}, err
	}
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: controllers.NewScheme()})
	return apiServerOfMesh{env: env, client: c}, err
}

// Main is crashtest.Main, and ends the API servers of some kinds, if there are any.
func Main(m *testing.M) int {
	return crashtest.Main(m, stopMeshServer, stopNetworkServer)
}

// stopMeshServer stops it if it was started.
func stopMeshServer() error {
	if meshServer.env == nil {
		return nil
	}
	return meshServer.env.Stop()
}

// NewMeshPlace returns a namespace on the API server with the kinds of Chaos Mesh, which starts
// with the first of them.
func NewMeshPlace(t *testing.T) *operatortest.Place {
	t.Helper()
	crds := meshtest.CRDs(t)
	meshServer.once.Do(func() { meshServer.apiServerOfMesh, meshServer.err = startMeshServer(crds) })
	if meshServer.err != nil {
		t.Fatal(meshServer.err)
	}
	return operatortest.NewPlaceOn(t, meshServer.env.Config, meshServer.client)
}

// NewOwnMeshPlace starts an API server for this test alone, which may uninstall kinds.
func NewOwnMeshPlace(t *testing.T) *operatortest.Place {
	t.Helper()
	server, err := startMeshServer(meshtest.CRDs(t))
	if server.env != nil {
		t.Cleanup(func() {
			if err := server.env.Stop(); err != nil {
				t.Errorf("stop the test's API server: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return operatortest.NewPlaceOn(t, server.env.Config, server.client)
}

// StartMesh starts the stand-in for Chaos Mesh's controller in a place.
func StartMesh(p *operatortest.Place) {
	var lists []client.ObjectList
	for _, kind := range KindsOfMesh() {
		lists = append(lists, object.NewList(kind))
	}
	p.StopMesh = p.StandIn("Chaos Mesh", p.LookEvery,
		func(ctx context.Context) error { return syncMesh(ctx, p) },
		lists...)
}

// Uninstall deletes a CRD and waits until its kind is no longer served.
func Uninstall(c client.Client, name string) error {
	ctx := context.Background()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(name)
	if err := c.Delete(ctx, crd); err != nil {
		return client.IgnoreNotFound(err)
	}
	return await.Try(ctx, await.Limit, func() error {
		err := c.Get(ctx, client.ObjectKey{Name: name}, crd)
		if err == nil {
			err = fmt.Errorf("CRD %s is still there", name)
		}
		return client.IgnoreNotFound(err)
	})
}

// syncMesh performs the next step of Chaos Mesh for every object.
func syncMesh(ctx context.Context, p *operatortest.Place) error {
	var problems []error
	for _, kind := range KindsOfMesh() {
		problems = append(problems, syncMeshKind(ctx, p, kind))
	}
	return errors.Join(problems...)
}

// KindsOfMesh are the kinds of the objects that faults create.
func KindsOfMesh() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, fault := range []v1alpha1.FaultType{
		v1alpha1.FaultPodKill, v1alpha1.FaultNetworkDelay, v1alpha1.FaultDiskDelay,
		v1alpha1.FaultCPUStress, v1alpha1.FaultClockSkew,
	} {
		kind, _ := object.Kind(fault) // the other faults of the network are of NetworkDelay's kind
		kinds = append(kinds, kind)
	}
	return kinds
}

func syncMeshKind(ctx context.Context, p *operatortest.Place, kind schema.GroupVersionKind) error {
	children, err := meshtest.Children(ctx, p.Client, kind, p.Namespace)
	if err != nil {
		return err
	}
	for _, child := range children {
		name, err := meshtest.PodOf(child, p.Namespace)
		if err != nil {
			return err
		}
		pod, state := p.Namespace+"/"+name, object.Read(child)
		switch {
		case child.GetDeletionTimestamp() != nil && !state.Stopped:
			meshtest.SetStatus(p.T, child, pod, meshtest.Recovers)
		case child.GetDeletionTimestamp() != nil:
			child.SetFinalizers(nil)
		case controllerutil.AddFinalizer(child, meshtest.Finalizer):
			meshtest.SetStatus(p.T, child, pod, meshtest.Selected)
		case !state.Injected:
			if kind.Kind == "PodChaos" {
				if err := p.Client.Delete(ctx,
					&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}},
					client.GracePeriodSeconds(0)); err != nil {
					return err
				}
			}
			meshtest.SetStatus(p.T, child, pod, meshtest.Injected)
		default:
			continue
		}
		if err := p.Client.Update(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

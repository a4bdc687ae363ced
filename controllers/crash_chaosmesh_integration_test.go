//go:build integration

package controllers

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
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// meshKinds are those that Chaos Mesh injects. A stand-in replaces its controller: it deletes pods, and has no other
// effect.
var meshKinds = []crashKind{
	{
		name:  "PodKill by Chaos Mesh",
		quick: true,
		fault: v1alpha1.FaultPodKill,
		needs: needsMesh,
		on:    newMeshPlace,
		scene: meshed(podsDeleted),
		spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
		}),
	},
	{
		name: "NetworkDelay", fault: v1alpha1.FaultNetworkDelay, needs: needsMesh, on: newMeshPlace, scene: meshed(nil),
		fades: true, spec: byMesh(delays),
	},
	{
		name:  "NetworkLoss",
		fault: v1alpha1.FaultNetworkLoss,
		needs: needsMesh,
		on:    newMeshPlace,
		scene: meshed(nil),
		fades: true,
		spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.NetworkLoss = &v1alpha1.NetworkLoss{Loss: "25%"}
		}),
	},
	{
		name:  "NetworkPartition",
		fault: v1alpha1.FaultNetworkPartition,
		needs: needsMesh,
		on:    newMeshPlace,
		scene: meshed(nil),
		fades: true,
		spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.NetworkPartition = &v1alpha1.NetworkPartition{From: v1alpha1.PeersClients}
		}),
	},
	{
		name:  "DiskDelay",
		fault: v1alpha1.FaultDiskDelay,
		needs: needsMesh,
		on:    newMeshPlace,
		scene: meshed(nil),
		fades: true,
		spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.DiskDelay = &v1alpha1.DiskDelay{Delay: *length(time.Second)}
		}),
	},
	{
		name:  "CPUStress",
		fault: v1alpha1.FaultCPUStress,
		needs: needsMesh,
		on:    newMeshPlace,
		scene: meshed(nil),
		fades: true,
		spec: byMesh(func(s *v1alpha1.RedisFaultSpec) {
			s.Action.CPUStress = &v1alpha1.CPUStress{Workers: 1, Load: 50}
		}),
	},
	{
		name: "ClockSkew", fault: v1alpha1.FaultClockSkew, needs: needsMesh, on: newMeshPlace, scene: meshed(nil),
		fades: true, spec: byMesh(skews),
	},
}

func delays(s *v1alpha1.RedisFaultSpec) {
	s.Action.NetworkDelay = &v1alpha1.NetworkDelay{Latency: *length(100 * time.Millisecond)}
}

func skews(s *v1alpha1.RedisFaultSpec) {
	s.Action.ClockSkew = &v1alpha1.ClockSkew{Offset: *length(-time.Hour)}
}

func byMesh(change func(*v1alpha1.RedisFaultSpec)) func(*place, *v1alpha1.RedisFaultSpec) {
	return byMeshFor(time.Second, change)
}

func byMeshFor(lasts time.Duration, change func(*v1alpha1.RedisFaultSpec)) func(*place, *v1alpha1.RedisFaultSpec) {
	return func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		spec.Engine = v1alpha1.EngineChaosMesh
		if spec.Action.Type != v1alpha1.FaultPodKill {
			spec.Duration = length(lasts)
		}
		change(spec)
	}
}

// meshed is the scene of one server that Chaos Mesh can reach.
func meshed(broken func(*redisSet) int) func(*place) scene {
	one := single(broken)
	return func(p *place) scene {
		sc := one(p)
		startMesh(p)
		return sc
	}
}

// meshServer is a second kube-apiserver with Chaos Mesh's kinds, which the first one must not have. It is started on
// first use and ends with the process.
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
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: apiServer.client.Scheme()})
	return apiServerOfMesh{env: env, client: c}, err
}

// stopMeshServer stops it if it was started.
func stopMeshServer() error {
	if meshServer.env == nil {
		return nil
	}
	return meshServer.env.Stop()
}

func newMeshPlace(t *testing.T) *place {
	t.Helper()
	crds := meshtest.CRDs(t)
	meshServer.once.Do(func() { meshServer.apiServerOfMesh, meshServer.err = startMeshServer(crds) })
	if meshServer.err != nil {
		t.Fatal(meshServer.err)
	}
	return newPlaceOn(t, meshServer.env.Config, meshServer.client)
}

// newOwnMeshPlace starts an API server for this test alone, which may uninstall kinds.
func newOwnMeshPlace(t *testing.T) *place {
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
	return newPlaceOn(t, server.env.Config, server.client)
}

// startMesh starts the stand-in for Chaos Mesh's controller in a place.
func startMesh(p *place) {
	var lists []client.ObjectList
	for _, kind := range kindsOfMesh() {
		lists = append(lists, object.NewList(kind))
	}
	p.stopMesh = p.standIn("Chaos Mesh", p.lookEvery, func(ctx context.Context) error { return syncMesh(ctx, p) },
		lists...)
}

// uninstall deletes a CRD and waits until its kind is no longer served.
func uninstall(c client.Client, name string) error {
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
func syncMesh(ctx context.Context, p *place) error {
	var problems []error
	for _, kind := range kindsOfMesh() {
		problems = append(problems, syncMeshKind(ctx, p, kind))
	}
	return errors.Join(problems...)
}

func kindsOfMesh() []schema.GroupVersionKind {
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

func syncMeshKind(ctx context.Context, p *place, kind schema.GroupVersionKind) error {
	children, err := meshtest.Children(ctx, p.client, kind, p.namespace)
	if err != nil {
		return err
	}
	for _, child := range children {
		name, err := meshtest.PodOf(child, p.namespace)
		if err != nil {
			return err
		}
		pod, state := p.namespace+"/"+name, object.Read(child)
		switch {
		case child.GetDeletionTimestamp() != nil && !state.Stopped:
			meshtest.SetStatus(p.t, child, pod, meshtest.Recovers)
		case child.GetDeletionTimestamp() != nil:
			child.SetFinalizers(nil)
		case controllerutil.AddFinalizer(child, meshtest.Finalizer):
			meshtest.SetStatus(p.t, child, pod, meshtest.Selected)
		case !state.Injected:
			if kind.Kind == "PodChaos" {
				if err := p.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}},
					client.GracePeriodSeconds(0)); err != nil {
					return err
				}
			}
			meshtest.SetStatus(p.t, child, pod, meshtest.Injected)
		default:
			continue
		}
		if err := p.client.Update(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

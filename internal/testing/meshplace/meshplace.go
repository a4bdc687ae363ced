//go:build integration

// Package meshplace is a kube-apiserver with the kinds of Chaos Mesh, and a stand-in for its
// controller: it sets finalizers and statuses, kills pods, and breaks nothing else.
package meshplace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

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
	"github.com/redquake/redquake/internal/testing/meshtest"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// server is a second kube-apiserver with Chaos Mesh's kinds, which the first one must not have.
// It is started on first use and ends with the process.
var server struct {
	once sync.Once
	apiServer
	err error
}

type apiServer struct {
	env    *envtest.Environment
	client client.WithWatch
}

func start(crds []string) (apiServer, error) {
	env, err := cluster.StartControlPlane(crds...)
	if err != nil {
		return apiServer{}, err
	}
	c, err := client.NewWithWatch(env.Config, client.Options{Scheme: controllers.NewScheme()})
	return apiServer{env: env, client: c}, err
}

// Stop stops the API server if it was started.
func Stop() error {
	if server.env == nil {
		return nil
	}
	return server.env.Stop()
}

// New returns a namespace on the API server with the kinds of Chaos Mesh, which starts
// with the first of them.
func New(t *testing.T) *operatortest.Place {
	t.Helper()
	crds := meshtest.CRDs(t)
	server.once.Do(func() { server.apiServer, server.err = start(crds) })
	if server.err != nil {
		t.Fatal(server.err)
	}
	return operatortest.NewPlaceOn(t, server.env.Config, server.client)
}

// NewOwn starts an API server for this test alone, which may uninstall kinds.
func NewOwn(t *testing.T) *operatortest.Place {
	t.Helper()
	server, err := start(meshtest.CRDs(t))
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

// Start starts the stand-in for Chaos Mesh's controller in a place.
func Start(p *operatortest.Place) {
	var lists []client.ObjectList
	for _, kind := range Kinds() {
		lists = append(lists, object.NewList(kind))
	}
	p.StopMesh = p.StandIn("Chaos Mesh", p.LookEvery,
		func(ctx context.Context) error { return step(ctx, p) },
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

// step performs the next step of Chaos Mesh for every object.
func step(ctx context.Context, p *operatortest.Place) error {
	var problems []error
	for _, kind := range Kinds() {
		problems = append(problems, stepOf(ctx, p, kind))
	}
	return errors.Join(problems...)
}

// Kinds are the kinds of the objects that faults create.
func Kinds() []schema.GroupVersionKind {
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

func stepOf(ctx context.Context, p *operatortest.Place, kind schema.GroupVersionKind) error {
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

//go:build integration

package faulttest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Main runs the tests of a package, and ends the servers and the control plane that they share.
func Main(m *testing.M) {
	code := redistest.Run(m)
	if err := controlPlane.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// controlPlane is a real kube-apiserver with its etcd, without controllers and without kubelets. It is started by the
// first test that uses it.
var controlPlane plane

type plane struct {
	once   sync.Once
	env    *envtest.Environment
	client client.Client
	err    error
}

func (p *plane) stop() error {
	if p.env == nil {
		return nil
	}
	return p.env.Stop()
}

// RealAPIServer is the control plane of this package's tests, in which the namespace of their objects exists. Tests
// share it, with different pods.
func RealAPIServer(t *testing.T) (*envtest.Environment, client.Client) {
	t.Helper()
	controlPlane.once.Do(controlPlane.start)
	Must(t, controlPlane.err)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "default"}},
	} {
		Must(t, client.IgnoreAlreadyExists(controlPlane.client.Create(t.Context(), object)))
	}
	return controlPlane.env, controlPlane.client
}

func (p *plane) start() {
	// It is not shared with other packages: a test installs Chaos Mesh's kinds, and removes them.
	if p.env, p.err = cluster.StartControlPlane(); p.err != nil {
		return
	}
	scheme := runtime.NewScheme()
	if p.err = errors.Join(clientgoscheme.AddToScheme(scheme), apiext.AddToScheme(scheme),
		object.AddToScheme(scheme)); p.err != nil {
		return
	}
	p.client, p.err = client.New(p.env.Config, client.Options{Scheme: scheme})
}

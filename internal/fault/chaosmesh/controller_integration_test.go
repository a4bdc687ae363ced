//go:build integration && chaosmesh

package chaosmesh

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/meshtest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// startChaosMesh runs Chaos Mesh's own controller against the API server. Its agents, one on each node, are missing
// here, as are the nodes.
func (c *chaosCluster) startChaosMesh() (stop func()) {
	t := c.t
	t.Helper()
	crds := filepath.Dir(meshtest.CRDs(t)[0])
	if _, err := envtest.InstallCRDs(c.env.Config, envtest.CRDInstallOptions{
		Paths:              []string{crds},
		ErrorIfPathMissing: true,
		MaxTime:            2 * time.Minute,
	}); err != nil {
		t.Fatal(err)
	}
	user, err := c.env.AddUser(envtest.User{Name: "chaos-mesh", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return meshtest.StartController(t, kubeconfig, "default")
}

// done calls a step until it is complete, as the controller does.
func (b *bench) done(what string, step func() error) {
	b.World.T.Helper()
	await.Until(b.World.T, what, step)
}

func (c *chaosCluster) bench(t *testing.T, spec *v1alpha1.RedisFaultSpec) *bench {
	return &bench{World: &faulttest.World{T: t}, mesh: mesh{t, c.client, spec}, deps: c.deps, target: c.target.DeepCopy()}
}

// The real Chaos Mesh kills a pod, reports why it cannot inject a network fault without an agent, and releases its
// objects; its absence does not block anything indefinitely.
func TestRealChaosMesh(t *testing.T) {
	c := newChaosCluster(t)
	stop := c.startChaosMesh()

	kill := v1alpha1.RedisFaultSpec{
		Engine: v1alpha1.EngineChaosMesh,
		Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill, PodKill: &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}},
	}
	b := c.bench(t, &kill)
	b.preflight()
	b.effect(v1alpha1.EffectNotObserved, "still runs")
	began := time.Now()
	b.done("the pod is killed", func() error { return faulttest.Called(b.injector().Inject(t.Context(), b.target)) })
	t.Logf("killed after %s: %s", time.Since(began).Round(time.Millisecond), object.Read(b.child()))
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis-0"},
		&corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod: %v", err)
	}
	b.effect(v1alpha1.EffectConfirmed, "is gone")
	began = time.Now()
	b.done("Chaos Mesh lets go", func() error { return faulttest.Called(b.injector().Revert(t.Context(), b.target)) })
	t.Logf("released after %s", time.Since(began).Round(time.Millisecond))
	if n := len(b.children()); n != 0 {
		t.Errorf("%d objects are left", n)
	}

	c.recreate("redis-0")
	for _, spec := range chaosMeshSpecs()[1:] {
		t.Run(string(spec.Action.Type), func(t *testing.T) {
			b := c.bench(t, &spec)
			b.deps.Owner.UID = types.UID(spec.Action.Type) // a separate fault: the object of the previous one may be stuck
			b.preflight()
			b.done("no agent: it says so", func() error {
				err := faulttest.Called(b.injector().Inject(t.Context(), b.target))
				var steps *faulttest.Pending
				if err == nil || errors.As(err, &steps) {
					return fmt.Errorf("inject: %v", err)
				}
				t.Logf("%v", err)
				return nil
			})
			if effect, evidence := b.injector().Effect(t.Context(), b.target); effect == v1alpha1.EffectConfirmed {
				t.Errorf("confirmed: %s", evidence)
			}
			b.expectInProgress(faulttest.Called(b.injector().Revert(t.Context(), b.target)), "Chaos Mesh reverts")
		})
	}

	stop()
	b = c.bench(t, &kill)
	b.target.UID = c.target.UID
	b.preflight()
	b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "nothing is selected yet")
	b.done("what nobody took up goes at once", func() error {
		return faulttest.Called(b.injector().Revert(t.Context(), b.target))
	})
}

// recreate creates a killed pod again, as its StatefulSet does, as the target of the next faults.
func (c *chaosCluster) recreate(name string) {
	c.t.Helper()
	port := 0
	if _, err := fmt.Sscanf(c.target.Address, "127.0.0.1:%d", &port); err != nil {
		c.t.Fatal(err)
	}
	settings, err := c.deps.Settings(c.t.Context(), c.target.Address, "dir")
	if err != nil {
		c.t.Fatal(err)
	}
	pod := c.pod(name, map[string]string{"app": "redis"}, &redistest.Server{Port: port, Dir: settings["dir"]})
	c.target.UID = string(pod.UID)
}

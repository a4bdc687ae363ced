//go:build integration

package chaosmesh

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/meshtest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// chaosCluster is a real API server, and a pod in it whose server is real.
type chaosCluster struct {
	t      *testing.T
	env    *envtest.Environment
	client client.Client // refuses fields that are not in the schema
	deps   contract.Deps
	target *v1alpha1.FaultTarget
}

func newChaosCluster(t *testing.T) *chaosCluster {
	t.Helper()
	env, under := faulttest.RealAPIServer(t)
	c := &chaosCluster{t: t, env: env, client: client.WithFieldValidation(under, metav1.FieldValidationStrict)}
	pair := redistest.NewReplication(t, 1, redistest.Options{})
	server := pair.Primary
	real := topology.NewReal()
	t.Cleanup(real.Close)
	pod := c.pod("redis-0", map[string]string{"app": "redis"}, server)
	c.pod("redis-1", map[string]string{"app": "redis"}, pair.Replicas[0])
	c.pod("run-0", map[string]string{v1alpha1.LabelLoadTest: "run"}, server)
	c.target = &v1alpha1.FaultTarget{
		Pod:       pod.Name,
		UID:       string(pod.UID),
		Address:   server.Address(),
		Container: "redis",
		RunID:     server.Info("run_id"),
		Role:      v1alpha1.RolePrimary,
	}
	c.deps = contract.Deps{
		Redis: target.Redis{
			Namespace: faulttest.Namespace,
			Live:      c.client,
			Servers:   real,
			Login:     redis.Login{Timeout: faulttest.Patient},
			Spec:      faulttest.ByPods(map[string]string{"app": "redis"}),
		},
		Cluster: c.client, LoadTest: "run",
		Owner: metav1.OwnerReference{
			APIVersion: v1alpha1.GroupVersion.String(),
			Kind:       "RedisFault",
			Name:       "break",
			UID:        "fault-uid",
			Controller: new(true),
		},
	}
	return c
}

// pod makes a running pod; its volume is mounted at the server's folder.
func (c *chaosCluster) pod(name string, labels map[string]string, server *redistest.Server) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: faulttest.Namespace,
			Name:      name,
			Labels:    labels,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "s", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{
					Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: int32(server.Port)}},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: server.Dir}},
				},
			},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
	if err := c.client.Create(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "127.0.0.1",
		[]corev1.PodIP{{IP: "127.0.0.1"}}
	if err := c.client.Status().Update(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func (c *chaosCluster) injector(spec *v1alpha1.RedisFaultSpec) contract.Injector {
	c.t.Helper()
	injector, err := New(spec, c.deps)
	if err != nil {
		c.t.Fatal(err)
	}
	return injector
}

// A cluster without Chaos Mesh, then with it, then without it again, during one process of the operator.
func TestChaosMeshOnAPIServer(t *testing.T) {
	t.Parallel()
	c := newChaosCluster(t)
	files := meshtest.CRDs(t)
	delay := delayed
	delay.Engine = v1alpha1.EngineChaosMesh
	unavailable := func() {
		t.Helper()
		problem := faulttest.ProblemOf(t, c.injector(&delay).Preflight(t.Context(), c.target))
		if problem.Reason != v1alpha1.ReasonEngineUnavailable || problem.Lasting {
			t.Errorf("%+v", problem)
		}
		if begun, err := c.injector(&delay).Begun(t.Context(), c.target); begun || err != nil {
			t.Errorf("begun %v (%v)", begun, err)
		}
		if err := faulttest.Called(c.injector(&delay).Revert(t.Context(), c.target)); err != nil {
			t.Errorf("revert: %v", err)
		}
	}
	unavailable()
	crds, err := envtest.InstallCRDs(c.env.Config, envtest.CRDInstallOptions{
		Paths:              files,
		ErrorIfPathMissing: true,
		MaxTime:            time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range chaosMeshSpecs() {
		t.Run(string(spec.Action.Type), func(t *testing.T) { c.course(t, &spec) })
	}
	if err := envtest.UninstallCRDs(c.env.Config, envtest.CRDInstallOptions{CRDs: crds}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the kinds are gone", func() error {
		var list apiext.CustomResourceDefinitionList
		err := c.client.List(t.Context(), &list)
		if slices.ContainsFunc(list.Items, func(crd apiext.CustomResourceDefinition) bool {
			return crd.Spec.Group == "chaos-mesh.org"
		}) {
			err = errors.New("there are CRDs left")
		}
		return err
	})
	unavailable()
}

func chaosMeshSpecs() []v1alpha1.RedisFaultSpec {
	second := metav1.Duration{Duration: time.Second}
	specs := []v1alpha1.RedisFaultSpec{
		{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}},
		delayed,
		{
			Action: v1alpha1.Action{
				Type: v1alpha1.FaultNetworkLoss,
				NetworkLoss: &v1alpha1.NetworkLoss{
					Loss:        "25%",
					Correlation: "5%",
					Direction:   v1alpha1.DirectionBoth,
					Peers:       []v1alpha1.NetworkPeer{v1alpha1.PeerClients},
				},
			},
		},
		{
			Action: v1alpha1.Action{
				Type:             v1alpha1.FaultNetworkPartition,
				NetworkPartition: &v1alpha1.NetworkPartition{Peers: []v1alpha1.NetworkPeer{v1alpha1.PeerReplicas}, Direction: v1alpha1.DirectionBoth},
			},
		},
		{
			Action: v1alpha1.Action{
				Type: v1alpha1.FaultDiskDelay,
				DiskDelay: &v1alpha1.DiskDelay{
					Delay:   second,
					Path:    "/data/*",
					Percent: 50,
					Methods: []v1alpha1.DiskMethod{v1alpha1.DiskFsync},
				},
			},
		},
		{Action: v1alpha1.Action{Type: v1alpha1.FaultCPUStress, CPUStress: &v1alpha1.CPUStress{Workers: 1, Load: 50}}},
		{
			Action: v1alpha1.Action{
				Type:      v1alpha1.FaultClockSkew,
				ClockSkew: &v1alpha1.ClockSkew{Offset: metav1.Duration{Duration: -time.Hour}},
			},
		},
	}
	for i := range specs {
		specs[i].Engine = v1alpha1.EngineChaosMesh
	}
	return specs
}

// course runs one fault from its injection to its revert, and deletes its object in each state that Chaos Mesh may have
// left.
func (c *chaosCluster) course(t *testing.T, spec *v1alpha1.RedisFaultSpec) {
	b := &bench{World: &faulttest.World{T: t}, mesh: mesh{t, c.client, spec}, deps: c.deps, target: c.target.DeepCopy()}
	b.preflight()
	for _, status := range []string{
		"", meshtest.Selected, meshtest.Waits, meshtest.Refused, meshtest.Injected,
		meshtest.Recovers, meshtest.Recovered, meshtest.Never,
	} {
		b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "nothing is selected yet")
		// another process
		b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "nothing is selected yet")
		if begun, err := b.injector().Begun(t.Context(), b.target); !begun || err != nil {
			t.Errorf("begun %v (%v) after Inject", begun, err)
		}
		if status != "" {
			b.setStatus(status)
			err := faulttest.Called(b.injector().Inject(t.Context(), b.target))
			var steps *faulttest.Pending
			switch {
			case status == meshtest.Injected && err != nil,
				(status == meshtest.Selected || status == meshtest.Waits) && !errors.As(err, &steps),
				slices.Contains([]string{meshtest.Refused, meshtest.Recovers, meshtest.Recovered, meshtest.Never}, status) &&
					(err == nil || errors.As(err, &steps)):
				t.Errorf("inject at %s: %v", status, err)
			}
			b.expectInProgress(faulttest.Called(b.injector().Revert(t.Context(), b.target)), "Chaos Mesh reverts")
			if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err == nil ||
				!strings.Contains(err.Error(), "deleted by somebody") {
				t.Errorf("inject during the deletion: %v", err)
			}
			b.removeFinalizer()
		}
		if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil || len(b.children()) != 0 {
			t.Fatalf("at %q: revert: %v, %d objects are left", status, err, len(b.children()))
		}
	}
}

// The clock and the disk settings that a real server reports can be parsed.
func TestChaosMeshReadsServers(t *testing.T) {
	t.Parallel()
	pair := redistest.NewReplication(t, 1, redistest.Options{})
	real := topology.NewReal()
	t.Cleanup(real.Close)
	c := chaosMesh{Deps: contract.Deps{Redis: target.Redis{Servers: real, Login: redis.Login{Timeout: faulttest.Patient}}}}
	hit := &v1alpha1.FaultTarget{Address: pair.Primary.Address()}
	if offset, trip, err := c.clock(t.Context(), hit); err != nil || offset.Abs() > 50*time.Millisecond+trip {
		t.Errorf("the clock of this machine is off by %s (%v)", offset, err)
	}
	if on, _, err := c.fsyncs(t.Context(), hit); on || err != nil {
		t.Errorf("append-only file %v (%v)", on, err)
	}
	pair.Primary.Do("CONFIG", "SET", "appendonly", "yes")
	if on, _, err := c.fsyncs(t.Context(), hit); !on || err != nil {
		t.Errorf("append-only file %v (%v)", on, err)
	}
	if settings, err := c.Settings(t.Context(), hit.Address, "dir"); err != nil || settings["dir"] != pair.Primary.Dir {
		t.Errorf("settings %v (%v), want dir %s", settings, err, pair.Primary.Dir)
	}
}

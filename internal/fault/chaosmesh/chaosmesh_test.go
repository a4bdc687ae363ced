package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// bench is a fault through Chaos Mesh and its target, which replies as scripted by answers.
type bench struct {
	*faulttest.World
	mesh
	deps    contract.Deps
	target  *v1alpha1.FaultTarget
	answers func(command string) (any, error)
	took    time.Duration // of each answer: such tests are in virtual time
}

func newBench(t *testing.T, spec v1alpha1.RedisFaultSpec, objects ...client.Object) *bench {
	t.Helper()
	spec.Engine = v1alpha1.EngineChaosMesh
	b := &bench{World: faulttest.NewWorld(t, objects...)}
	b.mesh = mesh{t, b.World.Cluster, &spec}
	b.Hooks.Delete = func(ctx context.Context, c client.WithWatch, object client.Object,
		options ...client.DeleteOption,
	) error {
		return c.Delete(ctx, object, options...)
	}
	pod := b.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "all", MountPath: "/"},
			{Name: "data", MountPath: "/data"},
			{Name: "etc", MountPath: "/etc/redis"},
		}
		p.Spec.TerminationGracePeriodSeconds = new(int64(11))
	})
	b.target = &v1alpha1.FaultTarget{
		Pod:       pod.Name,
		UID:       string(pod.UID),
		Address:   faulttest.AddressOf(pod),
		Container: "redis",
		RunID:     "run-u0",
		Role:      v1alpha1.RolePrimary,
	}
	for _, command := range []string{
		"CLIENT LIST", "CONFIG GET", "INFO keyspace", "INFO persistence", "INFO replication", "PING", "TIME",
	} {
		b.Servers.Script(command, b.answer)
	}
	b.deps = b.World.Deps()
	// the fake client sets no creation timestamp
	b.deps.Cluster = interceptor.NewClient(b.World.Cluster, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			object.SetCreationTimestamp(metav1.Now())
			return c.Create(ctx, object, options...)
		},
	})
	b.deps.Owner = metav1.OwnerReference{
		APIVersion:         v1alpha1.GroupVersion.String(),
		Kind:               "RedisFault",
		Name:               "break",
		UID:                "fault-uid",
		Controller:         new(true),
		BlockOwnerDeletion: new(true),
	}
	b.deps.Spec, b.deps.LoadTest = faulttest.ByPods(map[string]string{"app": "redis"}), "run"
	return b
}

// answer replies to a command as answers does, or else as the server does, after the time that it takes.
func (b *bench) answer(_ string, words []string) any {
	time.Sleep(b.took)
	if b.answers == nil {
		return nil
	}
	reply, err := b.answers(strings.Join(words, " "))
	switch {
	case redis.IsTimeout(err):
		return memredis.NoReply
	case err != nil:
		return memredis.HangUp
	}
	return reply
}

// injector returns a new injector, without state in memory.
func (b *bench) injector() contract.Injector {
	b.World.T.Helper()
	injector, err := New(b.spec, b.deps)
	if err != nil {
		b.World.T.Fatal(err)
	}
	return injector
}

func (b *bench) preflight() {
	b.World.T.Helper()
	if err := b.injector().Preflight(b.World.T.Context(), b.target); err != nil {
		b.World.T.Fatalf("preflight: %v", err)
	}
}

// expectInProgress fails the test unless an Inject or a Revert has begun and reports it.
func (b *bench) expectInProgress(err error, wantText string) {
	b.World.T.Helper()
	var steps *faulttest.Pending
	if !errors.As(err, &steps) || !strings.Contains(err.Error(), wantText) {
		b.World.T.Errorf("%v, want to be called again about %q", err, wantText)
	}
}

func (b *bench) effect(want v1alpha1.Effect, wantText string) {
	b.World.T.Helper()
	if got, evidence := b.injector().Effect(b.World.T.Context(), b.target); got != want ||
		!strings.Contains(evidence, wantText) {
		b.World.T.Errorf("effect %s (%s), want %s about %q", got, evidence, want, wantText)
	}
}

var delayed = v1alpha1.RedisFaultSpec{
	Action: v1alpha1.Action{
		Type: v1alpha1.FaultNetworkDelay,
		NetworkDelay: &v1alpha1.NetworkDelay{
			Latency:   metav1.Duration{Duration: 100 * time.Millisecond},
			Direction: v1alpha1.DirectionOut,
		},
	},
	Duration: &metav1.Duration{Duration: 20 * time.Second},
}

func TestChaosMeshCourse(t *testing.T) {
	b := newBench(t, delayed)
	b.preflight()
	if begun, err := b.injector().Begun(t.Context(), b.target); begun || err != nil {
		t.Errorf("begun %v (%v) before Inject", begun, err)
	}
	b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "nothing is selected yet")
	child := b.child()
	if name := child.GetName(); !strings.HasPrefix(name, "break-") || len(name) > 63 {
		t.Errorf("its name is %q", name)
	}
	if owners := child.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "fault-uid" ||
		owners[0].BlockOwnerDeletion != nil {
		t.Errorf("it belongs to %+v", owners)
	}
	if child.GetLabels()[v1alpha1.LabelFault] != "break" || len(child.GetAnnotations()) != 0 {
		t.Errorf("labels %v, annotations %v", child.GetLabels(), child.GetAnnotations())
	}
	if lasts := b.field("duration"); lasts != "1m20s" {
		t.Errorf("Chaos Mesh ends it after %v by itself, want the fault's 20s and a minute", lasts)
	}
	if begun, err := b.injector().Begun(t.Context(), b.target); !begun || err != nil {
		t.Errorf("begun %v (%v) after Inject", begun, err)
	}
	for _, step := range []struct{ status, wantText string }{
		{meshtest.Selected, "is Not Injected"},
		{meshtest.Waits, "Not Injected/Wait"},
	} {
		b.setStatus(step.status)
		b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), step.wantText)
		b.effect(v1alpha1.EffectInconclusive, step.wantText)
	}
	b.setStatus(meshtest.Refused)
	var steps *faulttest.Pending
	if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err == nil || errors.As(err, &steps) ||
		!strings.Contains(err.Error(), "no agent") {
		t.Errorf("refused by the agent: %v", err)
	}
	b.setStatus(meshtest.Injected)
	if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err != nil {
		t.Errorf("injected: %v", err)
	}
	b.child()
	b.expectInProgress(faulttest.Called(b.injector().Revert(t.Context(), b.target)), "is Injected")
	b.setStatus(meshtest.Recovers)
	b.expectInProgress(faulttest.Called(b.injector().Revert(t.Context(), b.target)), "Injected/Wait")
	b.removeFinalizer()
	if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil || len(b.children()) != 0 {
		t.Errorf("reverted: %v, %d objects are left", err, len(b.children()))
	}
	if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil {
		t.Errorf("reverted twice: %v", err)
	}
	b.effect(v1alpha1.EffectNotObserved, "there is no NetworkChaos break-")
}

// A child is deleted in any state, and immediately if Chaos Mesh never processed it.
func TestChaosMeshRevertInEveryState(t *testing.T) {
	for name, status := range map[string]string{
		"never seen": "", "selected": meshtest.Selected, "waits": meshtest.Waits, "refused": meshtest.Refused,
		"injected": meshtest.Injected, "recovered": meshtest.Recovered, "never": meshtest.Never,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, delayed)
			b.preflight()
			b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "")
			if status != "" {
				b.setStatus(status)
				b.expectInProgress(faulttest.Called(b.injector().Revert(t.Context(), b.target)), "reverts")
				b.expectInProgress(faulttest.Called(b.injector().Revert(t.Context(), b.target)), "reverts")
				b.removeFinalizer()
			}
			if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil || len(b.children()) != 0 {
				t.Errorf("%v, %d objects are left", err, len(b.children()))
			}
		})
	}
}

// An experiment that Chaos Mesh ended before it took effect is no injection.
func TestChaosMeshNeverTookEffect(t *testing.T) {
	b := newBench(t, delayed)
	b.preflight()
	b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "")
	b.setStatus(meshtest.Never)
	if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err == nil ||
		!strings.Contains(err.Error(), "before it took effect") {
		t.Errorf("inject: %v", err)
	}
	b.effect(v1alpha1.EffectInconclusive, "before it took effect")
	b.setStatus(meshtest.Recovered)
	b.effect(v1alpha1.EffectNotObserved, "reverted")
}

func TestChaosMeshUnavailable(t *testing.T) {
	kind := schema.GroupKind{Group: "chaos-mesh.org", Kind: "NetworkChaos"}
	for name, absent := range map[string]error{
		"unknown to the API server":   &meta.NoKindMatchError{GroupKind: kind},
		"removed after discovery":     apierrors.NewNotFound(schema.GroupResource{}, ""),
		"unknown, in a wrapped error": fmt.Errorf("list: %w", &meta.NoKindMatchError{GroupKind: kind}),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, delayed)
			none := interceptor.NewClient(b.World.Cluster, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
					options ...client.GetOption,
				) error {
					if _, ok := into.(object.Object); ok {
						return absent
					}
					return c.Get(ctx, key, into, options...)
				},
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return absent },
			})
			b.deps.Live = none
			problem := faulttest.ProblemOf(t, b.injector().Preflight(t.Context(), b.target))
			if problem.Reason != v1alpha1.ReasonEngineUnavailable || problem.Lasting ||
				!strings.Contains(problem.Message, "networkchaos.chaos-mesh.org") {
				t.Errorf("%+v", problem)
			}
			if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil {
				t.Errorf("revert without Chaos Mesh: %v", err)
			}
		})
	}
}

// An object of the same name with another owner is not changed.
func TestChaosMeshForeignChild(t *testing.T) {
	b := newBench(t, delayed)
	b.preflight()
	b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "")
	child := b.child()
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}})
	if err := b.World.Cluster.Update(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	if begun, err := b.injector().Begun(t.Context(), b.target); begun || err != nil {
		t.Errorf("begun %v (%v)", begun, err)
	}
	var steps *faulttest.Pending
	if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err == nil || errors.As(err, &steps) ||
		!strings.Contains(err.Error(), "another object") {
		t.Errorf("inject: %v", err)
	}
	if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil {
		t.Errorf("revert: %v", err)
	}
	b.child()
}

// A fault that was created again with the same name, and another pod, have children with other names.
func TestChaosMeshChildNames(t *testing.T) {
	name := func(owner, pod string) string {
		c := chaosMesh{
			Deps: contract.Deps{Owner: metav1.OwnerReference{Name: strings.Repeat("f", 46), UID: types.UID(owner)}},
		}
		return c.childName(&v1alpha1.FaultTarget{Pod: "redis-0", UID: pod})
	}
	first := name("a", "x")
	if first != name("a", "x") || first == name("b", "x") || first == name("a", "y") || len(first) > 63 {
		t.Errorf("names %s, %s, %s", first, name("b", "x"), name("a", "y"))
	}
}

// If Chaos Mesh is down, neither the injection nor the revert waits indefinitely.
func TestChaosMeshDown(t *testing.T) {
	long := metav1.NewTime(time.Now().Add(-time.Minute))
	c := chaosMesh{Deps: contract.Deps{Owner: metav1.OwnerReference{Name: "break", UID: "fault-uid"}}}
	kind, _ := object.Kind(v1alpha1.FaultNetworkDelay)
	child := object.New(kind)
	child.SetNamespace(faulttest.Namespace)
	child.SetName(c.childName(&v1alpha1.FaultTarget{UID: "u0"}))
	child.SetCreationTimestamp(long)
	child.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "v1", Kind: "RedisFault", Name: "break", UID: "fault-uid"},
	})
	b := newBench(t, delayed, child.DeepCopyObject().(client.Object))
	var steps *faulttest.Pending
	if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err == nil || errors.As(err, &steps) ||
		!strings.Contains(err.Error(), "is its controller up") {
		t.Errorf("inject: %v", err)
	}
	child.SetDeletionTimestamp(&long)
	child.SetFinalizers([]string{"chaos-mesh/records"})
	b = newBench(t, delayed, child)
	if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err == nil ||
		!strings.Contains(err.Error(), "deleted by somebody") {
		t.Errorf("inject: %v", err)
	}
	if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err == nil || errors.As(err, &steps) ||
		!strings.Contains(err.Error(), "has not reverted it") {
		t.Errorf("revert: %v", err)
	}
	for _, part := range []string{
		"kubectl -n shop delete networkchaos.chaos-mesh.org " + child.GetName(),
		"kubectl -n shop patch networkchaos.chaos-mesh.org " + child.GetName(), "kubectl -n shop delete pod redis-0",
	} {
		if text := b.injector().ManualRevertCommand(b.target); !strings.Contains(text, part) || len(text) > 2048 {
			t.Errorf("manual command: %q lacks %q", text, part)
		}
	}
}

// A deleted or replaced pod is not injected: Chaos Mesh identifies pods by name.
func TestChaosMeshTargetReplaced(t *testing.T) {
	for _, spec := range []v1alpha1.RedisFaultSpec{delayed, {Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}} {
		b := newBench(t, spec)
		b.preflight()
		pod := &corev1.Pod{}
		if err := b.World.Cluster.Get(t.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis-0"},
			pod); err != nil {
			t.Fatal(err)
		}
		b.Replace(pod, "u1")
		if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err != nil || len(b.children()) != 0 {
			t.Errorf("%s: inject: %v, %d objects", spec.Action.Type, err, len(b.children()))
		}
		if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil {
			t.Errorf("%s: revert: %v", spec.Action.Type, err)
		}
	}
	b := newBench(t, delayed)
	b.preflight()
	b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "")
	b.setStatus(meshtest.Injected)
	pod := &corev1.Pod{}
	if err := b.World.Cluster.Get(t.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis-0"},
		pod); err != nil {
		t.Fatal(err)
	}
	b.Replace(pod, "u1")
	b.effect(v1alpha1.EffectNotObserved, "does not follow")
}

func TestChaosMeshPodKill(t *testing.T) {
	for name, test := range map[string]struct {
		member *v1alpha1.PodKill
		grace  int64
	}{
		"the pod's own": {nil, 11},
		"at once":       {&v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}, 0},
		"as specified":  {&v1alpha1.PodKill{GracePeriodSeconds: new(int64(5))}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill, PodKill: test.member}})
			if traits := b.injector().Traits(); traits.Lasts != 0 || !traits.EndsServer || !traits.Silences {
				t.Errorf("%+v", traits)
			}
			b.preflight()
			b.expectInProgress(faulttest.Called(b.injector().Inject(t.Context(), b.target)), "")
			grace, _ := b.field("gracePeriod").(int64) // 0 is omitted
			if lasts := b.field("duration"); lasts != nil || grace != test.grace {
				t.Errorf("grace period %d, want %d; duration %v, want none", grace, test.grace, lasts)
			}
			b.effect(v1alpha1.EffectNotObserved, "still runs")
			b.setStatus(meshtest.Injected)
			if err := faulttest.Called(b.injector().Inject(t.Context(), b.target)); err != nil {
				t.Errorf("inject: %v", err)
			}
			b.setStatus(meshtest.Recovered)
			b.expectInProgress(faulttest.Called(b.injector().Revert(t.Context(), b.target)), "")
			b.removeFinalizer()
			if err := faulttest.Called(b.injector().Revert(t.Context(), b.target)); err != nil {
				t.Errorf("revert: %v", err)
			}
		})
	}
}

// The engine does not support every type; a validation rule of the API refuses them first.
func TestChaosMeshUnknownType(t *testing.T) {
	_, err := New(&v1alpha1.RedisFaultSpec{
		Engine: v1alpha1.EngineChaosMesh,
		Action: v1alpha1.Action{Type: v1alpha1.FaultFailover},
	}, contract.Deps{})
	if problem := faulttest.ProblemOf(t, err); !problem.Lasting || !strings.Contains(problem.Message, "Failover") {
		t.Errorf("%+v", problem)
	}
}

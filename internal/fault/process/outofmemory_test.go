package process

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// limited gives the container of a pod a memory limit.
func limited(limit string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
}

func filling(t *testing.T, w *faulttest.World, allow ...v1alpha1.Allowance) contract.Injector {
	t.Helper()
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultOutOfMemory}, Allow: allow,
	}, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	return injector
}

// What would hit something else than the server, lose data or not work is refused before anything is sent.
func TestOutOfMemoryPreflight(t *testing.T) {
	evicting := faulttest.Reply("maxmemory:104857600\r\nmaxmemory_policy:allkeys-lru\r\nused_memory:1048576\r\n")
	for name, tc := range map[string]struct {
		pod    func(*corev1.Pod)
		script map[string]memredis.Script // by command
		allow  []v1alpha1.Allowance
		reason string // "" = it is accepted
		says   string
	}{
		"limited": {pod: limited("256Mi")},
		"without a limit": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, nil, nil,
			v1alpha1.ReasonNotSupported, "has no memory limit",
		},
		"in a pod that is not restarted": {
			func(p *corev1.Pod) { limited("256Mi")(p); p.Spec.RestartPolicy = corev1.RestartPolicyNever }, nil, nil,
			v1alpha1.ReasonInvalidSpec, "restartPolicy Never",
		},
		"that evicts": {
			limited("256Mi"),
			map[string]memredis.Script{"INFO memory": evicting},
			nil, v1alpha1.ReasonBlastRadius,
			"has maxmemory 100Mi and policy allkeys-lru",
		},
		"that may evict": {
			limited("256Mi"), map[string]memredis.Script{"INFO memory": evicting}, []v1alpha1.Allowance{v1alpha1.AllowEviction}, "", "",
		},
		"that evicts clients": {
			limited("256Mi"),
			map[string]memredis.Script{"CONFIG GET maxmemory-clients": faulttest.Reply([]any{"maxmemory-clients", "10%"})},
			nil,
			v1alpha1.ReasonNotSupported, "has maxmemory-clients 10%",
		},
		"that takes short arguments": {
			limited("4Gi"),
			map[string]memredis.Script{"CONFIG GET proto-max-bulk-len": faulttest.Reply([]any{"proto-max-bulk-len", "1048576"})},
			nil,
			v1alpha1.ReasonNotSupported, "takes arguments of 1Mi at most",
		},
		"that may not be asked": {
			limited("256Mi"), map[string]memredis.Script{"CONFIG GET": faulttest.Reply(redis.Error("NOPERM no"))}, nil, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, tc.pod)
			for command, reply := range tc.script {
				w.Servers.At("10.0.0.1:6379").Script(command, reply)
			}
			target := &v1alpha1.FaultTarget{
				Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379", RunID: "run-u0", Container: "redis",
			}
			err := filling(t, w, tc.allow...).Preflight(t.Context(), target)
			if tc.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if p := faulttest.ProblemOf(t, err); p.Reason != tc.reason || !p.Lasting || !strings.Contains(p.Message, tc.says) {
				t.Errorf("%+v", p)
			}
		})
	}
}

// Only a container that the kernel has ended is the effect.
func TestOutOfMemoryEffect(t *testing.T) {
	w := faulttest.NewWorld(t)
	pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, limited("256Mi"))
	c := &faulttest.Case{
		World: w, Pod: pod, Injector: filling(t, w),
		Target: &v1alpha1.FaultTarget{
			Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379", RunID: "run-u0", Container: "redis",
		},
	}
	faulttest.Must(t, c.Injector.Preflight(t.Context(), c.Target))
	c.Effect(v1alpha1.EffectNotObserved, "still has run_id run-u0")
	w.Servers.Kill(c.Target.Address)
	c.Effect(v1alpha1.EffectInconclusive, "the kubelet has not said how container redis ended")
	ended := func(reason string, code int32) {
		t.Helper()
		pod := w.PodNamed("redis-0")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "redis", RestartCount: 1,
			LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code},
			},
		}}
		faulttest.Must(t, w.Cluster.Status().Update(t.Context(), pod))
	}
	ended("Error", 139)
	c.Effect(v1alpha1.EffectNotObserved, "ended with Error, exit code 139")
	ended("OOMKilled", 137)
	c.Effect(v1alpha1.EffectConfirmed, "the kernel ended container redis at its limit of 256Mi")
}

package process

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func TestProcessCrashPreflight(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("once", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
	})
	w.Pod("redis-0", "u1", "10.0.0.2", "", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways })
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash}},
		w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	stays := faulttest.ProblemOf(t,
		injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "once", UID: "u0", RunID: "r"}))
	if !stays.Lasting || !strings.Contains(stays.Message, "restartPolicy Never") {
		t.Errorf("%+v", stays)
	}
	silent := faulttest.ProblemOf(t,
		injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u1", Address: "10.0.0.2:6379"}))
	if silent.Lasting || !strings.Contains(silent.Message, "10.0.0.2:6379") {
		t.Errorf("%+v", silent)
	}
}

func TestProcessCrashEffect(t *testing.T) {
	w := faulttest.NewWorld(t)
	pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash}},
		w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	c := &faulttest.Case{
		World:    w,
		Pod:      pod,
		Injector: injector,
		Target: &v1alpha1.FaultTarget{
			Pod:       "redis-0",
			UID:       "u0",
			Address:   "10.0.0.1:6379",
			RunID:     "run-u0",
			Container: "redis",
		},
	}
	c.Effect(v1alpha1.EffectNotObserved, "run-u0")
	w.Servers.Kill(c.Target.Address)
	c.Effect(v1alpha1.EffectInconclusive, faulttest.ErrRefused.Error())
	w.Update(pod, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 })
	c.Effect(v1alpha1.EffectConfirmed, "1 restarts instead of 0")
	w.Servers.Start(c.Target.Address, memredis.State{RunID: "run-new"})
	c.Effect(v1alpha1.EffectConfirmed, "run-new instead of run-u0")
	w.Replace(pod, "u1")
	c.Effect(v1alpha1.EffectInconclusive, "replaced")
}

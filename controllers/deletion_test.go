package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// warnings are the notes of the Warning events about a fault.
func (p *place) warnings(fault string) []string {
	p.t.Helper()
	var all eventsv1.EventList
	if err := p.client.List(context.Background(), &all, client.InNamespace(p.namespace)); err != nil {
		p.t.Fatal(err)
	}
	var notes []string
	for _, e := range all.Items {
		if e.Regarding.Name == fault && e.Type == corev1.EventTypeWarning {
			notes = append(notes, e.Reason+": "+e.Note)
		}
	}
	return notes
}

// hzFault changes a setting for ten minutes, so that a missing revert is visible.
func hzFault(change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
	return newFault("break", "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
		f.Spec.Duration, f.Spec.Trigger.After = length(10*time.Minute), length(0)
		if change != nil {
			change(f)
		}
	})
}

// deletion is a fault that is deleted in some state, while something that it depends on is lost.
type deletion struct {
	name     string
	password string // of the server
	spec     func(*v1alpha1.RedisFault)
	state    string // the reason of Complete before the deletion
	lose     func(*place, *redisSet)
	reverted bool // whether the setting is restored
}

var deletions = []deletion{
	{
		name:     "waiting for a load that does not come",
		spec:     func(f *v1alpha1.RedisFault) { f.Spec.LoadTestRef.Name = "none" },
		state:    v1alpha1.ReasonLoadTestNotFound,
		reverted: true,
	},
	{name: "waiting for its time", spec: func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After = length(
			time.Hour)
	}, state: v1alpha1.ReasonWaitingForTime, reverted: true},
	{
		name:     "held",
		spec:     func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true },
		state:    v1alpha1.ReasonSuspended,
		reverted: true,
	},
	{name: "active", state: v1alpha1.ReasonActive, reverted: true},
	{
		name:     "active, the load test deleted",
		password: "s3cret",
		state:    v1alpha1.ReasonActive,
		reverted: true,
		lose: func(p *place, _ *redisSet) {
			p.mustChange(p.client.Delete(p.t.Context(), p.loadTest("run")))
			p.until("the load test is deleted", 20*time.Second, func() bool { return !p.read(namedTest("run")) }, func() string {
				return ""
			})
		},
	},
	{name: "active, the pod replaced", state: v1alpha1.ReasonActive, reverted: true, lose: func(p *place, s *redisSet) {
		p.mustChange(p.client.Delete(p.t.Context(), redisPodOf(p)))
		p.until("the pod is replaced", 20*time.Second, func() bool {
			return len(s.podsDeleted()) == 1 &&
				s.hz("") == "10"
		}, func() string { return s.hz("") })
	}},
	{name: "active, the pod deleted and not replaced", state: v1alpha1.ReasonActive, lose: func(p *place, s *redisSet) {
		s.leave()
		s.kill()
		p.mustChange(p.client.Delete(p.t.Context(), redisPodOf(p), client.GracePeriodSeconds(0)))
	}},
	{name: "active, Redis silent", state: v1alpha1.ReasonActive, lose: func(_ *place, s *redisSet) { s.silence() }},
	{name: "active, the port closed", state: v1alpha1.ReasonActive, lose: func(_ *place, s *redisSet) {
		s.leave()
		s.kill()
	}},
	{
		name:     "active, the Secret deleted",
		password: "s3cret",
		state:    v1alpha1.ReasonActive,
		lose: func(p *place, _ *redisSet) {
			p.mustChange(p.client.Delete(p.t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "auth"},
			}))
		},
	},
	{name: "reverting, Redis silent", state: v1alpha1.ReasonActive, lose: func(p *place, s *redisSet) {
		s.silence()
		p.mustChange(change(p, p.fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		p.faultHasReason("break", 20*time.Second, v1alpha1.ReasonReverting)
	}},
	{name: "recovery watched", state: v1alpha1.ReasonObserving, reverted: true, spec: func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Type, f.Spec.Action.Config, f.Spec.Duration = v1alpha1.FaultPodKill, nil, nil
	}},
}

func redisPodOf(p *place) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: redisName}}
	p.read(pod)
	return pod
}

// A fault is removed within a minute of its deletion, whatever its state and whatever is lost.
func TestFaultIsDeletedWithinAMinute(t *testing.T) {
	t.Parallel()
	for _, f := range deletions {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) { w.deleteWhile(&f) })
		})
	}
}

func (w *world) deleteWhile(f *deletion) {
	redis := w.startRedis(f.password)
	w.kubelet.Start()
	startOperator(w.place, spy{})
	if f.password != "" {
		w.create(passwordSecret())
	}
	w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: length(time.Hour)}
		if f.password != "" {
			test.Spec.Target.Auth = withPassword()
		}
	}))
	w.create(hzFault(f.spec))
	broken := w.faultHasReason("break", time.Minute, f.state)
	if f.state == v1alpha1.ReasonActive && redis.hz(f.password) != "50" {
		w.t.Errorf("hz is %s while the fault is active", redis.hz(f.password))
	}
	if len(broken.Finalizers) == 0 {
		w.t.Errorf("no finalizer keeps the fault: %s", where(broken.Status.Conditions))
	}
	if f.lose != nil {
		f.lose(w.place, redis)
	}
	w.isDeletedWithinAMinute(broken)
	if left := w.madeBy(broken); len(left) > 0 {
		w.t.Errorf("removed, but these are left: %v", left)
	}
	if f.reverted {
		w.until("the setting is what it was", time.Minute, func() bool {
			return redis.hz(f.password) == "10"
		}, func() string { return redis.hz(f.password) })
	}
}

// isDeletedWithinAMinute deletes a fault and waits until it is removed.
func (w *world) isDeletedWithinAMinute(f *v1alpha1.RedisFault) {
	w.t.Helper()
	w.mustChange(w.client.Delete(w.t.Context(), f))
	since := time.Now()
	w.until("it is removed", time.Minute, func() bool {
		return !w.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: f.Name}})
	}, func() string {
		f := w.fault(f.Name)
		return fmt.Sprintf("%s, targets %+v", where(f.Status.Conditions), f.Status.Targets)
	})
	w.t.Logf("removed after %s", time.Since(since))
}

// A fault that Chaos Mesh has to revert is removed within a minute even if Chaos Mesh does not run any more. Its
// objects remain.
func TestFaultIsDeletedWithoutChaosMesh(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		kind, _ := object.Kind(v1alpha1.FaultNetworkDelay)
		stopMesh := w.standIn("Chaos Mesh", 150*time.Millisecond, func(ctx context.Context) error {
			children, err := meshtest.Children(ctx, w.client, kind, w.namespace)
			if err != nil || len(children) == 0 {
				return err
			}
			child := children[0]
			if object.Read(child).Injected {
				return nil
			}
			controllerutil.AddFinalizer(child, meshtest.Finalizer)
			meshtest.SetStatus(w.t, child, w.namespace+"/"+redisName, meshtest.Injected)
			return w.client.Update(ctx, child)
		})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				time.Hour)
		}))
		w.create(hzFault(func(f *v1alpha1.RedisFault) {
			f.Spec.Action.Type, f.Spec.Action.Config, f.Spec.Engine = v1alpha1.FaultNetworkDelay, nil, v1alpha1.EngineChaosMesh
			f.Spec.Action.NetworkDelay = &v1alpha1.NetworkDelay{Latency: *length(100 * time.Millisecond)}
		}))
		broken := w.faultHasReason("break", time.Minute, v1alpha1.ReasonActive)
		stopMesh()
		w.isDeletedWithinAMinute(broken)
		if left, err := meshtest.Children(w.t.Context(), w.client, kind, w.namespace); err != nil || len(left) != 1 {
			w.t.Errorf("%d objects of Chaos Mesh are left, %v; want the one that it does not release", len(left), err)
		}
	})
}

// madeBy returns the objects that a fault created and that still exist.
func (w *world) madeBy(f *v1alpha1.RedisFault) []string {
	w.t.Helper()
	var left []string
	for _, list := range []client.ObjectList{
		&corev1.PodList{},
		&corev1.ConfigMapList{},
		&corev1.SecretList{},
		&batchv1.JobList{},
		&v1alpha1.RedisLoadTestList{},
	} {
		w.mustChange(w.client.List(context.Background(), list, client.InNamespace(w.namespace)))
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			owned := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == f.UID })
			if owned || o.GetLabels()[v1alpha1.LabelFault] != "" {
				left = append(left, fmt.Sprintf("%T %s", o, o.GetName()))
			}
			return nil
		})
	}
	return left
}

// The revert of a deleted fault is abandoned after 40 s, which is reported in the condition, in the record and as a
// warning, with the command to revert it manually.
func TestAbandonedRevertIsReported(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				time.Hour)
		}))
		p.create(hzFault(func(f *v1alpha1.RedisFault) { f.Finalizers = []string{"example.com/held"} }))
		p.faultHasReason("break", time.Minute, v1alpha1.ReasonActive)
		redis.silence()
		p.mustChange(p.client.Delete(t.Context(), p.fault("break")))
		var f *v1alpha1.RedisFault
		p.until("our finalizer is removed", time.Minute, func() bool {
			f = p.fault("break")
			return len(f.Finalizers) == 1
		}, func() string { return where(f.Status.Conditions) })
		target := f.Status.Targets[0]
		c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionReverted)
		if !target.RevertAbandoned || target.RevertedAt != nil || target.RevertError == "" || c == nil {
			t.Fatalf("condition %+v; record %+v", c, target)
		}
		for _, command := range []string{"CONFIG SET", "hz", "10"} {
			if !strings.Contains(target.ManualRevertCommand, command) || !strings.Contains(c.Message, command) {
				t.Errorf("no word of %q: by hand %q; %s", command, target.ManualRevertCommand, c.Message)
			}
		}
		var warnings []string
		p.until("a warning reports it", 20*time.Second, func() bool {
			warnings = p.warnings("break")
			return strings.Contains(strings.Join(warnings, "\n"), target.ManualRevertCommand)
		}, func() string { return fmt.Sprint(warnings) })
	})
}

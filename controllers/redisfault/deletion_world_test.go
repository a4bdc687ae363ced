package redisfault_test

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
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// warningsOf are the notes of the Warning events about a fault.
func warningsOf(p *operatortest.Place, fault string) []string {
	p.T.Helper()
	var all eventsv1.EventList
	if err := p.Client.List(context.Background(), &all, client.InNamespace(p.Namespace)); err != nil {
		p.T.Fatal(err)
	}
	var notes []string
	for _, e := range all.Items {
		if e.Regarding.Name == fault && e.Type == corev1.EventTypeWarning {
			notes = append(notes, e.Reason+": "+e.Note)
		}
	}
	return notes
}

// deletion is a fault that is deleted in some state, while something that it depends on is lost.
type deletion struct {
	name     string
	password string // of the server
	spec     func(*v1alpha1.RedisFault)
	state    string // the reason of Complete before the deletion
	lose     func(*operatortest.Place, *operatortest.RedisSet)
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
		f.Spec.Trigger.After = operatortest.Length(
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
		lose: func(p *operatortest.Place, _ *operatortest.RedisSet) {
			p.MustChange(p.Client.Delete(p.T.Context(), p.LoadTest("run")))
			p.Until("the load test is deleted", 20*time.Second, func() bool { return !p.Read(operatortest.NamedTest("run")) },
				func() string {
					return ""
				})
		},
	},
	{
		name:     "active, the pod replaced",
		state:    v1alpha1.ReasonActive,
		reverted: true,
		lose: func(p *operatortest.Place, s *operatortest.RedisSet) {
			p.MustChange(p.Client.Delete(p.T.Context(), operatortest.RedisPodOf(p)))
			p.Until("the pod is replaced", 20*time.Second, func() bool {
				return len(s.PodsDeleted()) == 1 &&
					s.Hz("") == "10"
			}, func() string { return s.Hz("") })
		},
	},
	{
		name:  "active, the pod deleted and not replaced",
		state: v1alpha1.ReasonActive,
		lose: func(p *operatortest.Place, s *operatortest.RedisSet) {
			s.Leave()
			s.Kill()
			p.MustChange(p.Client.Delete(p.T.Context(), operatortest.RedisPodOf(p), client.GracePeriodSeconds(0)))
		},
	},
	{
		name:  "active, Redis silent",
		state: v1alpha1.ReasonActive,
		lose:  func(_ *operatortest.Place, s *operatortest.RedisSet) { s.Silence() },
	},
	{
		name:  "active, the port closed",
		state: v1alpha1.ReasonActive,
		lose: func(_ *operatortest.Place, s *operatortest.RedisSet) {
			s.Leave()
			s.Kill()
		},
	},
	{
		name:     "active, the Secret deleted",
		password: "s3cret",
		state:    v1alpha1.ReasonActive,
		lose: func(p *operatortest.Place, _ *operatortest.RedisSet) {
			p.MustChange(p.Client.Delete(p.T.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "auth"},
			}))
		},
	},
	{
		name:  "reverting, Redis silent",
		state: v1alpha1.ReasonActive,
		lose: func(p *operatortest.Place, s *operatortest.RedisSet) {
			s.Silence()
			p.MustChange(operatortest.Change(p, p.Fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
			p.FaultHasReason("break", 20*time.Second, v1alpha1.ReasonReverting)
		},
	},
	{name: "recovery watched", state: v1alpha1.ReasonObserving, reverted: true, spec: func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Type, f.Spec.Action.Config, f.Spec.Duration = v1alpha1.FaultPodKill, nil, nil
	}},
}

// A fault is removed within a minute of its deletion, whatever its state and whatever is lost.
func TestFaultIsDeletedWithinAMinute(t *testing.T) {
	t.Parallel()
	for _, f := range deletions {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) { deleteWhile(w, &f) })
		})
	}
}

func deleteWhile(w *operatortest.World, f *deletion) {
	redis := w.StartRedis(f.password)
	w.Kubelet.Start()
	operatortest.StartOperator(w.Place, operatortest.Spy{})
	if f.password != "" {
		w.Create(operatortest.PasswordSecret())
	}
	w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: operatortest.Length(time.Hour)}
		if f.password != "" {
			test.Spec.Target.Auth = operatortest.WithPassword()
		}
	}))
	w.Create(operatortest.HzFault(f.spec))
	broken := w.FaultHasReason("break", time.Minute, f.state)
	if f.state == v1alpha1.ReasonActive && redis.Hz(f.password) != "50" {
		w.T.Errorf("hz is %s while the fault is active", redis.Hz(f.password))
	}
	if len(broken.Finalizers) == 0 {
		w.T.Errorf("no finalizer keeps the fault: %s", operatortest.Where(broken.Status.Conditions))
	}
	if f.lose != nil {
		f.lose(w.Place, redis)
	}
	isDeletedWithinAMinute(w, broken)
	if left := madeBy(w, broken); len(left) > 0 {
		w.T.Errorf("removed, but these are left: %v", left)
	}
	if f.reverted {
		w.Until("the setting is what it was", time.Minute, func() bool {
			return redis.Hz(f.password) == "10"
		}, func() string { return redis.Hz(f.password) })
	}
}

// isDeletedWithinAMinute deletes a fault and waits until it is removed.
func isDeletedWithinAMinute(w *operatortest.World, f *v1alpha1.RedisFault) {
	w.T.Helper()
	w.MustChange(w.Client.Delete(w.T.Context(), f))
	since := time.Now()
	w.Until("it is removed", time.Minute, func() bool {
		return !w.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: f.Name}})
	}, func() string {
		f := w.Fault(f.Name)
		return fmt.Sprintf("%s, targets %+v", operatortest.Where(f.Status.Conditions), f.Status.Targets)
	})
	w.T.Logf("removed after %s", time.Since(since))
}

// A fault that Chaos Mesh has to revert is removed within a minute even if Chaos Mesh does not run any more. Its
// objects remain.
func TestFaultIsDeletedWithoutChaosMesh(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		kind, _ := object.Kind(v1alpha1.FaultNetworkDelay)
		stopMesh := w.StandIn("Chaos Mesh", 150*time.Millisecond, func(ctx context.Context) error {
			children, err := meshtest.Children(ctx, w.Client, kind, w.Namespace)
			if err != nil || len(children) == 0 {
				return err
			}
			child := children[0]
			if object.Read(child).Injected {
				return nil
			}
			controllerutil.AddFinalizer(child, meshtest.Finalizer)
			meshtest.SetStatus(w.T, child, w.Namespace+"/"+operatortest.RedisName, meshtest.Injected)
			return w.Client.Update(ctx, child)
		})
		w.CreateLoad(operatortest.Lasting(time.Hour))
		w.Create(operatortest.HzFault(func(f *v1alpha1.RedisFault) {
			f.Spec.Action.Type, f.Spec.Action.Config, f.Spec.Engine = v1alpha1.FaultNetworkDelay, nil, v1alpha1.EngineChaosMesh
			f.Spec.Action.NetworkDelay = &v1alpha1.NetworkDelay{Latency: *operatortest.Length(100 * time.Millisecond)}
		}))
		broken := w.FaultHasReason("break", time.Minute, v1alpha1.ReasonActive)
		stopMesh()
		isDeletedWithinAMinute(w, broken)
		if left, err := meshtest.Children(w.T.Context(), w.Client, kind, w.Namespace); err != nil || len(left) != 1 {
			w.T.Errorf("%d objects of Chaos Mesh are left, %v; want the one that it does not release", len(left), err)
		}
	})
}

// madeBy returns the objects that a fault created and that still exist.
func madeBy(w *operatortest.World, f *v1alpha1.RedisFault) []string {
	w.T.Helper()
	var left []string
	for _, list := range []client.ObjectList{
		&corev1.PodList{},
		&corev1.ConfigMapList{},
		&corev1.SecretList{},
		&batchv1.JobList{},
		&v1alpha1.RedisLoadTestList{},
	} {
		w.MustChange(w.Client.List(context.Background(), list, client.InNamespace(w.Namespace)))
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
	operatortest.Scenario{Load: operatortest.Lasting(time.Hour)}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Create(operatortest.HzFault(func(f *v1alpha1.RedisFault) { f.Finalizers = []string{"example.com/held"} }))
		p.FaultHasReason("break", time.Minute, v1alpha1.ReasonActive)
		p.Redis.Silence()
		p.MustChange(p.Client.Delete(t.Context(), p.Fault("break")))
		var f *v1alpha1.RedisFault
		p.Until("our finalizer is removed", time.Minute, func() bool {
			f = p.Fault("break")
			return len(f.Finalizers) == 1
		}, func() string { return operatortest.Where(f.Status.Conditions) })
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
		p.Until("a warning reports it", 20*time.Second, func() bool {
			warnings = warningsOf(p, "break")
			return strings.Contains(strings.Join(warnings, "\n"), target.ManualRevertCommand)
		}, func() string { return fmt.Sprint(warnings) })
	})
}

//go:build integration

package operator

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// templateSetting is a setting of the pod template, and two fields of it.
func templateSetting(name string) *v1alpha1.RedisFault {
	f := operatortest.SettingFor(name, "hz", "50")
	f.Spec.Action = v1alpha1.Action{
		Type: v1alpha1.FaultPodTemplate,
		PodTemplate: stage.TemplatePatch(
			`{"terminationGracePeriodSeconds": 4, "containers": [{"name": "redis", "env": [{"name": "TIER", "value": "gold"}]}]}`),
	}
	f.Spec.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
	return f
}

func set(f *stage.Fleet) *appsv1.StatefulSet {
	f.T.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}}
	if !f.Read(set) {
		f.T.Fatal("StatefulSet redis is gone")
	}
	return set
}

// tiersOf are the values of the variable of all pods, and their grace periods.
func tiersOf(f *stage.Fleet) (all []string) {
	f.T.Helper()
	var pods corev1.PodList
	f.MustChange(f.Client.List(context.Background(), &pods, client.InNamespace(f.Namespace), client.MatchingLabels{
		"app": "redis",
	}))
	for i := range pods.Items {
		tier := "-"
		for _, v := range pods.Items[i].Spec.Containers[0].Env {
			tier = v.Value
		}
		all = append(all, tier)
	}
	return all
}

// A load runs with a template on all three real servers, and a kill on the same load does not undo it. Then the
// StatefulSet is as it was, byte by byte.
func TestPodTemplateOfALoad(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	f := stage.StartFleet(p, 3, nil)
	operatortest.StartKubelet(p, nil)
	operatortest.StartOperator(p, operatortest.Spy{})
	before := set(f)
	setting := templateSetting("setting")
	setting.Spec.Target.PodSelector = stage.RedisPods().PodSelector
	p.Create(setting)
	p.FaultHasReason("setting", 2*time.Minute, v1alpha1.ReasonActive)
	if got := tiersOf(f); !slices.Equal(got, []string{"gold", "gold", "gold"}) {
		t.Errorf("during the setting: %q", got)
	}
	p.Create(operatortest.NewLoadTest("run", f.Address(0), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = stage.RedisPods(f.Address(0))
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:              new(int32(100)),
			Duration:          operatortest.Length(8 * time.Second),
			UntilFaultsSettle: operatortest.Length(10 * time.Minute),
		}
	}))
	p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(k *v1alpha1.RedisFault) {
		k.Spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Names: []string{"redis-2"}}
	}))
	if kill := p.FaultEnds("kill", 2*time.Minute); kill.Status.Effect != v1alpha1.EffectConfirmed {
		t.Errorf("kill: %s, effect %s", operatortest.Where(kill.Status.Conditions), kill.Status.Effect)
	}
	p.TestEnds("run", 2*time.Minute)
	operatortest.HeldIs(t, p.FaultEnds("setting", 2*time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld,
		v1alpha1.VerdictPass)
	after := set(f)
	if !apiequality.Semantic.DeepEqual(after.Spec, before.Spec) || len(after.Annotations) != len(before.Annotations) {
		t.Errorf("in the end:\n%+v\n%v\nbefore:\n%+v", after.Spec, after.Annotations, before.Spec)
	}
	if got := tiersOf(f); !slices.Equal(got, []string{"-", "-", "-"}) {
		t.Errorf("in the end: %q", got)
	}
}

// A fault that is deleted in the middle of a roll is reverted all the same, though its pods take longer until they are
// ready than a revert may fail.
func TestDeletedDuringARoll(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	var slow atomic.Bool
	f := stage.StartFleet(p, 3, func(f *stage.Fleet, _ *appsv1.StatefulSet) {
		start := f.Pods.Start
		f.Pods.Start = func(pod *corev1.Pod) (func(), <-chan struct{}, error) {
			if slow.Load() {
				await.Pass(lifecycle.RevertPatience/2, "what is tested are pods that take long until they are ready")
			}
			return start(pod)
		}
	})
	operatortest.StartOperator(p, operatortest.Spy{})
	before := set(f)
	setting := templateSetting("setting")
	setting.Spec.Target.PodSelector = stage.RedisPods().PodSelector
	p.Create(setting)
	p.FaultHasReason("setting", 2*time.Minute, v1alpha1.ReasonActive)
	slow.Store(true)
	p.MustChange(p.Client.Delete(t.Context(), setting))
	p.Until("the fault is gone", 5*time.Minute,
		func() bool { return !p.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "setting"}}) },
		func() string { return operatortest.Where(p.Fault("setting").Status.Conditions) })
	after := set(f)
	if !apiequality.Semantic.DeepEqual(after.Spec, before.Spec) || len(after.Annotations) != len(before.Annotations) {
		t.Errorf("in the end:\n%+v\n%v\nbefore:\n%+v", after.Spec, after.Annotations, before.Spec)
	}
	if got := tiersOf(f); !slices.Equal(got, []string{"-", "-", "-"}) {
		t.Errorf("in the end: %q", got)
	}
}

// What somebody else changes meanwhile stays: of another field without a word, of a field of the fault with a warning
// and an event.
func TestPodTemplateBesideSomebodyElse(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	f := stage.StartFleet(p, 2, nil)
	operatortest.StartOperator(p, operatortest.Spy{})
	setting := templateSetting("setting")
	setting.Spec.Target.PodSelector = stage.RedisPods().PodSelector
	p.Create(setting)
	p.FaultHasReason("setting", 2*time.Minute, v1alpha1.ReasonActive)
	p.MustChange(operatortest.Change(p, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}},
		func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(3))
			s.Spec.Template.Annotations = map[string]string{"example.com/by": "somebody"}
		}))
	p.MustChange(operatortest.Change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "setting"}},
		func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	over := p.FaultEnds("setting", 2*time.Minute)
	if over.Status.RevertedAt == nil || !slices.ContainsFunc(over.Status.Warnings, func(w string) bool {
		return strings.Contains(w,
			"somebody else changed spec.terminationGracePeriodSeconds in the template of StatefulSet redis")
	}) {
		t.Errorf("%s, warnings %q", operatortest.Where(over.Status.Conditions), over.Status.Warnings)
	}
	set := set(f)
	spec := set.Spec.Template.Spec
	if *spec.TerminationGracePeriodSeconds != 3 || set.Spec.Template.Annotations["example.com/by"] != "somebody" ||
		len(spec.Containers[0].Env) != 0 {
		t.Errorf("the template in the end: %+v", set.Spec.Template)
	}
	if set.Annotations[v1alpha1.AnnotationFormerPodTemplate] != "" ||
		set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		t.Errorf("strategy %s, annotations %v", set.Spec.UpdateStrategy.Type, set.Annotations)
	}
	if got := tiersOf(f); !slices.Equal(got, []string{"-", "-"}) {
		t.Errorf("in the end: %q", got)
	}
}

// The runs of a cell have the pod template of the cell, those of the others the former one, which is there in the end.
func TestExperimentOnPodTemplates(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	f := stage.StartFleet(p, 2, nil)
	operatortest.StartKubelet(p, nil)
	var mu sync.Mutex
	tiers := map[string][]string{}
	operatortest.StartOperator(p, operatortest.Spy{After: func(w operatortest.Write) {
		test, is := w.Object.(*v1alpha1.RedisLoadTest)
		if !is || w.Verb != "patch-status" || operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonRunning {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		tiers[test.Annotations[v1alpha1.AnnotationCell]] = tiersOf(f)
	}})
	before := set(f)
	p.Create(operatortest.NewExperiment("tiers", f.Address(0), func(e *v1alpha1.RedisExperiment) {
		e.Spec.Template.Spec.Target = stage.RedisPods(f.Address(0))
		e.Spec.Repeat = 1
		e.Spec.Matrix = []v1alpha1.ExperimentParameter{{Name: "tier", Settings: []v1alpha1.ExperimentSetting{
			{Name: "none"},
			{
				Name:        "gold",
				PodTemplate: stage.TemplatePatch(`{"containers": [{"name": "redis", "env": [{"name": "TIER", "value": "gold"}]}]}`),
			},
		}, Allow: []v1alpha1.Allowance{v1alpha1.AllowDataLoss}}} // these servers write nothing to a disk
	}))
	e := p.ExperimentEnds("tiers", 10*time.Minute)
	if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonSucceeded || e.Status.Progress.Finished != 2 ||
		e.Status.Progress.Failed != 0 {
		t.Errorf("%s; %+v", operatortest.Where(e.Status.Conditions), e.Status.Cells)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(tiers["tier=gold"], []string{"gold", "gold"}) ||
		!slices.Equal(tiers["tier=none"], []string{"-", "-"}) {
		t.Errorf("the runs had %v", tiers)
	}
	if after := set(f); !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!slices.Equal(tiersOf(f), []string{"-", "-"}) {
		t.Errorf("in the end: %+v, %v", after.Spec, tiersOf(f))
	}
}

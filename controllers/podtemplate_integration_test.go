//go:build integration

package controllers

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
)

// templateSetting is a setting of the pod template, and two fields of it.
func templateSetting(name string) *v1alpha1.RedisFault {
	f := settingFor(name, "hz", "50")
	f.Spec.Action = v1alpha1.Action{
		Type: v1alpha1.FaultPodTemplate,
		PodTemplate: templatePatch(
			`{"terminationGracePeriodSeconds": 4, "containers": [{"name": "redis", "env": [{"name": "TIER", "value": "gold"}]}]}`),
	}
	f.Spec.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
	return f
}

func (f *fleet) set() *appsv1.StatefulSet {
	f.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}}
	if !f.read(set) {
		f.t.Fatal("StatefulSet redis is gone")
	}
	return set
}

// tiers are the values of the variable of all pods, and their grace periods.
func (f *fleet) tiers() (all []string) {
	f.t.Helper()
	var pods corev1.PodList
	f.mustChange(f.client.List(context.Background(), &pods, client.InNamespace(f.namespace), client.MatchingLabels{
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
	p := newPlace(t)
	f := startFleet(p, 3, nil)
	startKubelet(p, nil)
	startOperator(p, spy{})
	before := f.set()
	setting := templateSetting("setting")
	setting.Spec.Target.PodSelector = redisPods().PodSelector
	p.create(setting)
	p.faultHasReason("setting", 2*time.Minute, v1alpha1.ReasonActive)
	if got := f.tiers(); !slices.Equal(got, []string{"gold", "gold", "gold"}) {
		t.Errorf("during the setting: %q", got)
	}
	p.create(newLoadTest("run", f.address(0), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = redisPods(f.address(0))
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:              new(int32(100)),
			Duration:          length(8 * time.Second),
			UntilFaultsSettle: length(10 * time.Minute),
		}
	}))
	p.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(k *v1alpha1.RedisFault) {
		k.Spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Names: []string{"redis-2"}}
	}))
	if kill := p.faultEnds("kill", 2*time.Minute); kill.Status.Effect != v1alpha1.EffectConfirmed {
		t.Errorf("kill: %s, effect %s", where(kill.Status.Conditions), kill.Status.Effect)
	}
	p.testEnds("run", 2*time.Minute)
	heldIs(t, p.faultEnds("setting", 2*time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
	after := f.set()
	if !apiequality.Semantic.DeepEqual(after.Spec, before.Spec) || len(after.Annotations) != len(before.Annotations) {
		t.Errorf("in the end:\n%+v\n%v\nbefore:\n%+v", after.Spec, after.Annotations, before.Spec)
	}
	if got := f.tiers(); !slices.Equal(got, []string{"-", "-", "-"}) {
		t.Errorf("in the end: %q", got)
	}
}

// A fault that is deleted in the middle of a roll is reverted all the same, though its pods take longer until they are
// ready than a revert may fail.
func TestDeletedDuringARoll(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var slow atomic.Bool
	f := startFleet(p, 3, func(f *fleet, _ *appsv1.StatefulSet) {
		start := f.pods.Start
		f.pods.Start = func(pod *corev1.Pod) (func(), <-chan struct{}, error) {
			if slow.Load() {
				await.Pass(lifecycle.RevertPatience/2, "what is tested are pods that take long until they are ready")
			}
			return start(pod)
		}
	})
	startOperator(p, spy{})
	before := f.set()
	setting := templateSetting("setting")
	setting.Spec.Target.PodSelector = redisPods().PodSelector
	p.create(setting)
	p.faultHasReason("setting", 2*time.Minute, v1alpha1.ReasonActive)
	slow.Store(true)
	p.mustChange(p.client.Delete(t.Context(), setting))
	p.until("the fault is gone", 5*time.Minute,
		func() bool { return !p.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "setting"}}) },
		func() string { return where(p.fault("setting").Status.Conditions) })
	after := f.set()
	if !apiequality.Semantic.DeepEqual(after.Spec, before.Spec) || len(after.Annotations) != len(before.Annotations) {
		t.Errorf("in the end:\n%+v\n%v\nbefore:\n%+v", after.Spec, after.Annotations, before.Spec)
	}
	if got := f.tiers(); !slices.Equal(got, []string{"-", "-", "-"}) {
		t.Errorf("in the end: %q", got)
	}
}

// What somebody else changes meanwhile stays: of another field without a word, of a field of the fault with a warning
// and an event.
func TestPodTemplateBesideSomebodyElse(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	f := startFleet(p, 2, nil)
	startOperator(p, spy{})
	setting := templateSetting("setting")
	setting.Spec.Target.PodSelector = redisPods().PodSelector
	p.create(setting)
	p.faultHasReason("setting", 2*time.Minute, v1alpha1.ReasonActive)
	p.mustChange(change(p, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}}, func(s *appsv1.StatefulSet) {
		s.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(3))
		s.Spec.Template.Annotations = map[string]string{"example.com/by": "somebody"}
	}))
	p.mustChange(change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "setting"}},
		func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	over := p.faultEnds("setting", 2*time.Minute)
	if over.Status.RevertedAt == nil || !slices.ContainsFunc(over.Status.Warnings, func(w string) bool {
		return strings.Contains(w,
			"somebody else changed spec.terminationGracePeriodSeconds in the template of StatefulSet redis")
	}) {
		t.Errorf("%s, warnings %q", where(over.Status.Conditions), over.Status.Warnings)
	}
	set := f.set()
	spec := set.Spec.Template.Spec
	if *spec.TerminationGracePeriodSeconds != 3 || set.Spec.Template.Annotations["example.com/by"] != "somebody" ||
		len(spec.Containers[0].Env) != 0 {
		t.Errorf("the template in the end: %+v", set.Spec.Template)
	}
	if set.Annotations[v1alpha1.AnnotationFormerPodTemplate] != "" ||
		set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		t.Errorf("strategy %s, annotations %v", set.Spec.UpdateStrategy.Type, set.Annotations)
	}
	if got := f.tiers(); !slices.Equal(got, []string{"-", "-"}) {
		t.Errorf("in the end: %q", got)
	}
}

// The runs of a cell have the pod template of the cell, those of the others the former one, which is there in the end.
func TestExperimentOnPodTemplates(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	f := startFleet(p, 2, nil)
	startKubelet(p, nil)
	var mu sync.Mutex
	tiers := map[string][]string{}
	startOperator(p, spy{After: func(w write) {
		test, is := w.Object.(*v1alpha1.RedisLoadTest)
		if !is || w.Verb != "patch-status" || reason(test.Status.Conditions) != v1alpha1.ReasonRunning {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		tiers[test.Annotations[v1alpha1.AnnotationCell]] = f.tiers()
	}})
	before := f.set()
	p.create(newExperiment("tiers", f.address(0), func(e *v1alpha1.RedisExperiment) {
		e.Spec.Template.Spec.Target = redisPods(f.address(0))
		e.Spec.Repeat = 1
		e.Spec.Matrix = []v1alpha1.ExperimentParameter{{Name: "tier", Settings: []v1alpha1.ExperimentSetting{
			{Name: "none"},
			{
				Name:        "gold",
				PodTemplate: templatePatch(`{"containers": [{"name": "redis", "env": [{"name": "TIER", "value": "gold"}]}]}`),
			},
		}, Allow: []v1alpha1.Allowance{v1alpha1.AllowDataLoss}}} // these servers write nothing to a disk
	}))
	e := p.experimentEnds("tiers", 10*time.Minute)
	if reason(e.Status.Conditions) != v1alpha1.ReasonSucceeded || e.Status.Progress.Finished != 2 ||
		e.Status.Progress.Failed != 0 {
		t.Errorf("%s; %+v", where(e.Status.Conditions), e.Status.Cells)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(tiers["tier=gold"], []string{"gold", "gold"}) ||
		!slices.Equal(tiers["tier=none"], []string{"-", "-"}) {
		t.Errorf("the runs had %v", tiers)
	}
	if after := f.set(); !apiequality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!apiequality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!slices.Equal(f.tiers(), []string{"-", "-"}) {
		t.Errorf("in the end: %+v, %v", after.Spec, f.tiers())
	}
}

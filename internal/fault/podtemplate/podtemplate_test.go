package podtemplate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fieldpaths "k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

const secret = "s3cret-value"

// bench is a StatefulSet without pods of its own beside redis-0. Servers do not answer, so that nothing is rolled.
type bench struct {
	*testing.T
	client client.WithWatch
	says   error // of a patch
}

func newBench(t *testing.T, change func(*appsv1.StatefulSet, *corev1.Pod)) *bench {
	t.Helper()
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "redis", UID: "set"},
		Spec: appsv1.StatefulSetSpec{
			Replicas:       new(int32(1)),
			Template:       template(),
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		},
	}
	set.Status.UpdateRevision = "one"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop",
			Name:      "redis-0",
			UID:       "pod",
			Labels:    map[string]string{"app": "redis", appsv1.StatefulSetRevisionLabel: "one"},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")),
			},
		},
		Spec: template().Spec,
	}
	if change != nil {
		change(set, pod)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{T: t}
	b.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(set, pod).Build(),
		interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
				options ...client.PatchOption,
			) error {
				if b.says != nil {
					return b.says
				}
				return c.Patch(ctx, o, patch, options...)
			},
		})
	return b
}

func (b *bench) fault(patch string, setting bool) podTemplate {
	return podTemplate{patch: []byte(patch), setting: setting, Deps: contract.Deps{
		Redis:   target.Redis{Namespace: "shop", Live: b.client, Spec: &v1alpha1.RedisTarget{}},
		Cluster: b.client,
		Owner:   metav1.OwnerReference{UID: types.UID("fault")},
	}}
}

func (b *bench) set() *appsv1.StatefulSet {
	b.Helper()
	set := &appsv1.StatefulSet{}
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: "shop", Name: "redis"}, set); err != nil {
		b.Fatal(err)
	}
	return set
}

func (b *bench) change(change func(*appsv1.StatefulSet)) {
	b.Helper()
	set := b.set()
	change(set)
	if err := b.client.Update(b.Context(), set); err != nil {
		b.Fatal(err)
	}
}

func redis0() *v1alpha1.FaultTarget {
	return &v1alpha1.FaultTarget{Pod: "redis-0", UID: "pod", Container: "redis"}
}

// What cannot work is refused with the field, before anything is changed, and without a value.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		patch  string
		change func(*appsv1.StatefulSet, *corev1.Pod)
		says   error
		reason string // InvalidSpec unless set
		want   string
	}{
		"nothing changes": {
			patch: `{"spec":{"containers":[{"name":"redis","image":"redis:7"}]}}`,
			want:  "changes nothing of the template of StatefulSet redis",
		},
		"an unknown field": {patch: `{"spec":{"priorityClass":"high"}}`, want: `unknown field "spec.priorityClass"`},
		"an unknown list":  {patch: `{"spec":{"contaners":[{"name":"redis"}]}}`, want: `contaners`},
		"unknown metadata": {patch: `{"metadata":{"label":{"a":"b"}}}`, want: `label`},
		"another type":     {patch: `{"spec":{"hostNetwork":"` + secret + `"}}`, want: "cannot unmarshal string"},
		"no list":          {patch: `{"spec":{"containers":{"name":"redis"}}}`, want: "the result is no pod template"},
		"an item without name": {
			patch: `{"spec":{"containers":[{"name":"redis","env":[{"value":"` + secret + `"}]}]}}`,
			want:  "an item of a list lacks its name",
		},
		"a selecting label": {
			patch: `{"metadata":{"labels":{"app":"other"}}}`,
			want:  "patch.metadata.labels[app]: the pods of StatefulSet redis are selected by this label",
		},
		"a removed label": {patch: `{"metadata":{"labels":null}}`, want: "patch.metadata.labels[app]"},
		"the server removed": {
			patch: `{"spec":{"containers":[{"name":"redis","$patch":"delete"}]}}`,
			want:  "patch.spec.containers: it removes container redis",
		},
		"too long": {
			patch: `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", longestPatch) + `"}}}`,
			want:  "at most 16384",
		},
		"refused by the API server": {
			patch: `{"spec":{"containers":[{"name":"redis","env":[{"name":"A","value":"` + secret + `"}]}]}}`,
			says: apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind(), "redis",
				fieldpaths.ErrorList{fieldpaths.Invalid(fieldpaths.NewPath("spec", "template", "spec", "x"), secret, "not so")}),
			want: "refuses the template of StatefulSet redis: spec.template.spec.x: not so",
		},
		"refused by a webhook that quotes": {
			patch: `{"spec":{"containers":[{"name":"redis","args":["--requirepass","` + secret + `"]}]}}`,
			says:  apierrors.NewForbidden(appsv1.Resource("statefulsets"), "redis", errors.New("a webhook denies "+secret)),
			want:  "a webhook denies (redacted)",
		},
		"left by an earlier fault": {
			patch:  `{"spec":{"priorityClassName":"high"}}`,
			reason: v1alpha1.ReasonNotSupported,
			want:   "of an earlier fault that was not reverted",
			change: func(s *appsv1.StatefulSet, _ *corev1.Pod) {
				s.Annotations = map[string]string{v1alpha1.AnnotationFormerPodTemplate: "{}"}
			},
		},
		"no StatefulSet": {
			patch:  `{"spec":{"priorityClassName":"high"}}`,
			reason: v1alpha1.ReasonNotSupported,
			want:   "pod redis-0 does not belong to a StatefulSet",
			change: func(_ *appsv1.StatefulSet, p *corev1.Pod) { p.OwnerReferences = nil },
		},
		"an operator's": {
			patch:  `{"spec":{"priorityClassName":"high"}}`,
			reason: v1alpha1.ReasonNotSupported,
			want:   "belongs to RedisFailover cache (databases.spotahome.com/v1), whose operator would revert a change of it: change it there",
			change: func(s *appsv1.StatefulSet, _ *corev1.Pod) {
				s.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "databases.spotahome.com/v1", Kind: "RedisFailover", Name: "cache", Controller: new(true)},
				}
			},
		},
		"no room for both templates": {
			patch:  `{"spec":{"priorityClassName":"high"}}`,
			reason: v1alpha1.ReasonNotSupported,
			want:   "the annotations of the StatefulSet in which they are kept",
			change: func(s *appsv1.StatefulSet, _ *corev1.Pod) {
				s.Spec.Template.Annotations = map[string]string{"a": strings.Repeat("x", longestWay/2)}
			},
		},
		"a roll under way": {
			patch:  `{"spec":{"priorityClassName":"high"}}`,
			reason: v1alpha1.ReasonInjectionFailed,
			want:   "cannot be rolled now: pod redis-0 is not of its latest revision",
			change: func(_ *appsv1.StatefulSet, p *corev1.Pod) { p.Labels[appsv1.StatefulSetRevisionLabel] = "zero" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tc.change)
			b.says = tc.says
			hit, before := redis0(), b.set()
			err := b.fault(tc.patch, false).Preflight(t.Context(), hit)
			found, is := errors.AsType[*problem.Problem](err)
			if reason := tc.reason; !is ||
				found.Reason != reason && (reason != "" || found.Reason != v1alpha1.ReasonInvalidSpec) ||
				!strings.Contains(found.Message, tc.want) {
				t.Fatalf("%v, want %s with %q", err, tc.reason, tc.want)
			}
			if strings.Contains(found.Message, secret) || len(found.Message) > 1000 {
				t.Errorf("the message shows a value: %s", found.Message)
			}
			if after := b.set(); after.ResourceVersion != before.ResourceVersion || hit.Revert != nil {
				t.Errorf("something was changed, or recorded: %v", hit.Revert)
			}
		})
	}
}

// A template that has what is wanted is no reason to refuse a setting. Nothing is done then.
func TestSettingThatIsThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *appsv1.StatefulSet, p *corev1.Pod) {
		p.Status = corev1.PodStatus{
			PodIP:      "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
	})
	hit := redis0()
	if err := contract.Save(hit, templateRecord{StatefulSet: "redis", UID: "set", Revision: "one"}); err != nil {
		t.Fatal(err)
	}
	p, before := b.fault(`{"spec":{"containers":[{"name":"redis","image":"redis:7"}]}}`, true), b.set().ResourceVersion
	for _, step := range []func(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error){p.Inject, p.Revert} {
		if progress, err := step(t.Context(), hit); err != nil || !progress.Complete() {
			t.Errorf("%+v, %v", progress, err)
		}
	}
	if effect, why := p.Effect(t.Context(), hit); effect != v1alpha1.EffectConfirmed {
		t.Errorf("%s: %s", effect, why)
	}
	if b.set().ResourceVersion != before || !strings.HasPrefix(p.Describe(hit).Action, "nothing: ") ||
		p.ManualRevertCommand(hit) != "" {
		t.Errorf("%+v", p.Describe(hit))
	}
	b.change(func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "redis:8" })
	if effect, why := p.Effect(t.Context(), hit); effect != v1alpha1.EffectNotObserved {
		t.Errorf("after somebody else's change: %s: %s", effect, why)
	}
}

// marked is a fault that has written its template.
func marked(t *testing.T) (*bench, podTemplate, *v1alpha1.FaultTarget) {
	t.Helper()
	b := newBench(t, nil)
	p := b.fault(`{"spec":{"containers":[{"name":"redis","env":[{"name":"TOKEN","value":"`+secret+`"}]}]}}`, false)
	hit := redis0()
	fields := []string{`spec.containers[name="redis"].env[name="TOKEN"]`}
	if err := contract.Save(hit, templateRecord{
		StatefulSet: "redis",
		UID:         "set",
		Revision:    "one",
		Strategy:    b.set().Spec.UpdateStrategy,
		Fields:      fields,
	}); err != nil {
		t.Fatal(err)
	}
	progress, err := p.Inject(t.Context(), hit)
	if err != nil || progress.Stage != contract.StagePreparing || len(b.set().Annotations) != 2 ||
		len(b.set().Spec.Template.Spec.Containers[0].Env) != 2 {
		t.Fatalf("the way back comes first: %+v, %v, %+v", progress, err, b.set())
	}
	progress, err = p.Inject(t.Context(), hit)
	if set := b.set(); err != nil || progress.Stage != contract.StageUnderway ||
		set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType ||
		len(set.Spec.Template.Spec.Containers[0].Env) != 3 {
		t.Fatalf("%+v, %v, %+v", progress, err, set.Spec)
	}
	if begun, err := p.Begun(t.Context(), hit); !begun || err != nil {
		t.Errorf("begun %v, %v", begun, err)
	}
	return b, p, hit
}

// Whatever somebody else does with the annotations, the template is not put back by guessing, and no record of the
// fault is made of its own change.
func TestAnnotationsOfSomebodyElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*appsv1.StatefulSet)
		want   string
	}{
		"removed": {
			func(s *appsv1.StatefulSet) { s.Annotations = nil },
			"somebody else removed the annotation redquake.dev/former-pod-template",
		},
		"one removed": {func(s *appsv1.StatefulSet) {
			delete(s.Annotations,
				v1alpha1.AnnotationChangedPodTemplate)
		}, "somebody else changed the annotations"},
		"removed, and part of the change": {func(s *appsv1.StatefulSet) {
			s.Annotations, s.Spec.Template = nil, template()
		}, "somebody else removed the annotation"},
		"nonsense": {
			func(s *appsv1.StatefulSet) { s.Annotations[v1alpha1.AnnotationFormerPodTemplate] = "{}" },
			"somebody else changed the annotations",
		},
		"another fault's": {func(s *appsv1.StatefulSet) {
			s.Annotations[v1alpha1.AnnotationChangedPodTemplate] = strings.Replace(
				s.Annotations[v1alpha1.AnnotationChangedPodTemplate], `"fault":"fault"`, `"fault":"other"`, 1)
		}, "are of another fault, with the UID other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p, hit := marked(t)
			b.change(tc.change)
			before := b.set()
			if _, err := p.Revert(t.Context(), hit); err == nil || !strings.Contains(err.Error(), tc.want) ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("revert: %v, want %q", err, tc.want)
			}
			hit.InjectedAt = new(metav1.NowMicro())
			if _, err := p.Inject(t.Context(), hit); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("inject: %v", err)
			}
			if b.set().ResourceVersion != before.ResourceVersion {
				t.Error("something was changed")
			}
		})
	}
}

// Somebody else's change of the very field is kept and named; the rest is put back.
func TestRevertBesideSomebodyElse(t *testing.T) {
	t.Parallel()
	b, p, hit := marked(t)
	b.change(func(s *appsv1.StatefulSet) {
		env("TOKEN", "other-"+secret)(&s.Spec.Template)
		priority("low")(&s.Spec.Template)
	})
	if effect, why := p.Effect(t.Context(), hit); effect != v1alpha1.EffectNotObserved ||
		!strings.Contains(why, `env[name="TOKEN"].value`) || strings.Contains(why, secret) {
		t.Errorf("%s: %s", effect, why)
	}
	for range 3 {
		if _, err := p.Revert(t.Context(), hit); err != nil {
			t.Fatal(err)
		}
	}
	warnings := p.Warnings(hit)
	if len(warnings) != 1 || !strings.Contains(warnings[0], `spec.containers[name="redis"].env[name="TOKEN"].value`) ||
		strings.Contains(warnings[0]+hit.Revert.Data, secret) {
		t.Errorf("warnings %q, record %s", warnings, hit.Revert.Data)
	}
	t2 := b.set().Spec.Template
	if v := t2.Spec.Containers[0].Env; t2.Spec.PriorityClassName != "low" ||
		!slices.ContainsFunc(v, func(v corev1.EnvVar) bool { return v.Value == "other-"+secret }) {
		t.Errorf("%+v", t2)
	}
}

// A revert that is abandoned leaves nothing that keeps the StatefulSet's controller from rolling the pods: by one
// write, from any step on.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, steps := range []int{0, 1, 2} { // of the revert
		b, p, hit := marked(t)
		b.change(func(s *appsv1.StatefulSet) { priority("low")(&s.Spec.Template) }) // by somebody else
		for range steps {
			if _, err := p.Revert(t.Context(), hit); err != nil {
				t.Fatal(err)
			}
		}
		writes := 0
		p.Cluster = interceptor.NewClient(b.client, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
				options ...client.PatchOption,
			) error {
				writes++
				return c.Patch(ctx, o, patch, options...)
			},
		})
		for range 2 {
			if err := p.Leave(t.Context(), hit); err != nil {
				t.Fatal(err)
			}
		}
		want := template()
		priority("low")(&want)
		if set := b.set(); writes > 1 || !apiequality.Semantic.DeepEqual(set.Spec.Template, want) ||
			set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || len(set.Annotations) != 0 {
			t.Errorf("after %d steps and %d writes: strategy %s, annotations %v, template %+v", steps, writes,
				set.Spec.UpdateStrategy.Type, set.Annotations, set.Spec.Template)
		}
	}
}

// What a fault has stored is not what a target has recorded that comes after it: the changed template is nobody's
// former one.
func TestRecordOfAChangedTemplate(t *testing.T) {
	t.Parallel()
	b, p, hit := marked(t)
	b.change(func(s *appsv1.StatefulSet) { s.Annotations = nil })
	set := b.set()
	set.Status.UpdateRevision = "two"
	if err := b.client.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Inject(t.Context(), hit); err == nil ||
		!strings.Contains(err.Error(), "was changed since the fault was recorded") {
		t.Error(err)
	}
}

// The command for a person, run by a shell, patches the StatefulSet with what its annotation holds, and shows no value
// itself.
func TestManualRevertCommand(t *testing.T) {
	t.Parallel()
	b, p, hit := marked(t)
	folder := t.TempDir()
	former := b.set().Annotations[v1alpha1.AnnotationFormerPodTemplate]
	script := "#!/bin/sh\ncase \"$3\" in get) cat " + folder + "/former;; patch) printf '%s\\n' \"$@\" > " + folder +
		"/called;; esac\n"
	for name, content := range map[string]string{"former": former, "kubectl": script} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := p.ManualRevertCommand(hit)
	command := exec.CommandContext(t.Context(), "sh", "-c", text)
	command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	called, err := os.ReadFile(filepath.Join(folder, "called"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSpace(string(called)), "\n")
	if err := b.client.Patch(t.Context(), b.set(),
		client.RawPatch(types.JSONPatchType, []byte(words[len(words)-1]))); err != nil {
		t.Fatalf("%v: %q", err, words)
	}
	set := b.set()
	if !apiequality.Semantic.DeepEqual(set.Spec.Template, template()) || len(set.Annotations) != 0 ||
		set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		t.Errorf("%+v", set)
	}
	if strings.Contains(text, secret) || strings.Contains(hit.Revert.Data, secret) {
		t.Error("a value is shown")
	}
}

package podtemplate

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// template is that of a Redis, with some changes.
func template(changes ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{
			{
				Name:      "redis",
				Image:     "redis:7",
				Args:      []string{"redis-server"},
				Env:       []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			},
			{Name: "exporter", Image: "exporter:1"},
		},
		SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(1))},
	}}
	t.Labels = map[string]string{"app": "redis"}
	for _, change := range changes {
		change(&t)
	}
	return t
}

func env(name, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		c := &t.Spec.Containers[0]
		if i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name }); i >= 0 {
			c.Env[i].Value = value
			return
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func withoutEnv(name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		c := &t.Spec.Containers[0]
		c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
	}
}

func image(container int, name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[container].Image = name }
}

func args(words ...string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Args = words }
}

func sidecar(image string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		i := slices.IndexFunc(t.Spec.Containers, func(c corev1.Container) bool { return c.Name == "side" })
		if i < 0 {
			t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "side"})
			i = len(t.Spec.Containers) - 1
		}
		t.Spec.Containers[i].Image = image
	}
}

func annotation(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[key] = value
	}
}

func volume(name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: name}) }
}

func cpu(limit string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
	}
}

func priority(name string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.PriorityClassName = name }
}

type changes = []func(*corev1.PodTemplateSpec)

// Only what the fault has changed is put back; what somebody else has changed of that is left, and named.
func TestBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  changes // of the former template
		others changes // after the fault
		want   changes // of the former template
		lost   []string
		kept   []string
	}{
		"nobody else": {fault: changes{env("X", "x"), priority("high"), cpu("2")}},
		"another field": {
			fault:  changes{env("X", "x")},
			others: changes{image(0, "redis:8"), env("C", "c")},
			want:   changes{image(0, "redis:8"), env("C", "c")},
		},
		"another container": {
			fault:  changes{sidecar("s:1")},
			others: changes{image(1, "exporter:2")},
			want:   changes{image(1, "exporter:2")},
		},
		"a changed value": {
			fault:  changes{env("A", "2"), cpu("2")},
			others: changes{image(0, "redis:8")},
			want:   changes{image(0, "redis:8")},
		},
		"a removed item": {
			fault:  changes{withoutEnv("A"), cpu("2")},
			others: changes{priority("low")},
			want:   changes{priority("low")},
		},
		"a new map": {
			fault:  changes{annotation("x/y", "1")},
			others: changes{priority("low")},
			want:   changes{priority("low")},
		},
		"a new map, in part": {
			fault:  changes{annotation("x/y", "1")},
			others: changes{annotation("z", "2")},
			want:   changes{annotation("z", "2")},
		},
		"a new list, in part": {fault: changes{volume("v")}, others: changes{volume("w")}, want: changes{volume("w")}},
		"atomic": {
			fault:  changes{args("redis-server", "--hz", "50")},
			others: changes{priority("low")},
			want:   changes{priority("low")},
		},
		"the very field": {
			fault:  changes{env("A", "2"), cpu("2")},
			others: changes{env("A", "3")},
			want:   changes{env("A", "3")},
			lost:   []string{`spec.containers[name="redis"].env[name="A"].value`},
			kept:   []string{`spec.containers[name="redis"].env[name="A"].value`},
		},
		"the very field, as it was before": {
			fault: changes{env("A", "2"), cpu("2")}, others: changes{env("A", "a")},
			lost: []string{`spec.containers[name="redis"].env[name="A"].value`},
		},
		"an added item": {
			fault:  changes{env("X", "1"), cpu("2")},
			others: changes{env("X", "2")},
			want:   changes{env("X", "2")},
			lost:   []string{`spec.containers[name="redis"].env[name="X"].value`},
			kept:   []string{`spec.containers[name="redis"].env[name="X"].value`},
		},
		"an added item that is removed": {
			fault: changes{env("X", "1"), cpu("2")}, others: changes{withoutEnv("X")},
			lost: []string{`spec.containers[name="redis"].env[name="X"]`},
		},
		"an added container": {
			fault:  changes{sidecar("s:1"), cpu("2")},
			others: changes{sidecar("s:2")},
			want:   changes{sidecar("s:2")},
			lost:   []string{`spec.containers[name="side"].image`},
			kept:   []string{`spec.containers[name="side"].image`},
		},
		"a removed item that is back, otherwise": {
			fault:  changes{withoutEnv("B"), cpu("2")},
			others: changes{env("B", "3")},
			want:   changes{env("B", "3")},
			lost:   []string{`spec.containers[name="redis"].env[name="B"]`},
			kept:   []string{`spec.containers[name="redis"].env[name="B"].value`},
		},
		"an atomic field": {
			fault: changes{args("x"), cpu("2")}, others: changes{args("y")}, want: changes{args("y")},
			lost: []string{`spec.containers[name="redis"].args`}, kept: []string{`spec.containers[name="redis"].args`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := way{former: template(), changed: template(tc.fault...)}
			current := template(slices.Concat(tc.fault, tc.others)...)
			lost, err := w.lost(&current)
			if err != nil || !slices.Equal(lost, tc.lost) {
				t.Errorf("lost %q, want %q (%v)", lost, tc.lost, err)
			}
			for range 2 { // the second time, as after a restart, nothing is left to do
				got, kept, err := w.back(&current)
				if want := template(tc.want...); err != nil || !apiequality.Semantic.DeepEqual(ordered(got), ordered(want)) {
					t.Errorf("%+v\nwant\n%+v (%v)", got, want, err)
				}
				if !slices.Equal(kept, tc.kept) {
					t.Errorf("kept %q, want %q", kept, tc.kept)
				}
				current = got
			}
		})
	}
}

// The API server accepts two variables of one name, and so does the fault. Both stay.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	twice := func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = append(t.Spec.Containers[0].Env, corev1.EnvVar{Name: "A", Value: "again"})
	}
	w := way{former: template(twice), changed: template(twice, env("X", "x"))}
	fields, err := w.fields()
	if err != nil || !slices.Equal(fields, []string{`spec.containers[name="redis"].env[name="X"]`}) {
		t.Errorf("%q, %v", fields, err)
	}
	current := template(twice, env("X", "x"), image(0, "redis:8"))
	got, kept, err := w.back(&current)
	if want := template(twice, image(0, "redis:8")); err != nil || len(kept) != 0 ||
		!apiequality.Semantic.DeepEqual(ordered(got), ordered(want)) {
		t.Errorf("%+v\nwant\n%+v (%v, kept %q)", got, want, err, kept)
	}
}

// ordered sorts the lists whose items have names: the order of what others have added is not restored.
func ordered(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t = *t.DeepCopy()
	for i := range t.Spec.Containers {
		slices.SortStableFunc(t.Spec.Containers[i].Env, func(a, b corev1.EnvVar) int {
			return strings.Compare(a.Name,
				b.Name)
		})
	}
	return t
}

// The names of fields have no values, and an added item is one name.
func TestFields(t *testing.T) {
	t.Parallel()
	w := way{
		former:  template(),
		changed: template(env("X", "s3cret"), sidecar("s:1"), args("a"), annotation("x/y", "s3cret"), cpu("2"), volume("v")),
	}
	got, err := w.fields()
	want := []string{
		"metadata.annotations.x/y", `spec.containers[name="redis"].args`,
		`spec.containers[name="redis"].env[name="X"]`, `spec.containers[name="redis"].resources.limits.cpu`,
		`spec.containers[name="side"]`, `spec.volumes[name="v"]`,
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	if got, err := (way{former: template(), changed: template()}).fields(); err != nil || len(got) != 0 {
		t.Errorf("of no change: %q, %v", got, err)
	}
}

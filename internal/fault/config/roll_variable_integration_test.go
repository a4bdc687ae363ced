//go:build integration

package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// bitnamiScript is the program of Bitnami's chart redis-cluster that starts the server.
const bitnamiScript = "/opt/bitnami/scripts/redis-cluster/run.sh"

// startedByScript lets the chart's shell start the server, with the given variables.
func startedByScript(env ...corev1.EnvVar) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		container := &set.Spec.Template.Spec.Containers[1]
		container.Command = []string{"/bin/bash", "-c", "/opt/bitnami/scripts/redis-cluster/entrypoint.sh " + bitnamiScript}
		container.Args = nil
		container.Env = env
	}
}

// A start script gets the number by the variable that it passes on.
func TestIOThreadsRollsByVariable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		env  []corev1.EnvVar
		want string
	}{
		{"absent", []corev1.EnvVar{{Name: "REDIS_PORT_NUMBER", Value: "6379"}}, "--io-threads 2"},
		{
			"with a value",
			[]corev1.EnvVar{{Name: "REDIS_EXTRA_FLAGS", Value: "--hz 20"}, {Name: "REDIS_PORT_NUMBER", Value: "6379"}},
			"--hz 20 --io-threads 2",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, 2, startedByScript(tc.env...))
			spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
			targets := w.record(spec)
			w.inject(targets, spec)
			w.expectThreads("2")
			source := optionSource{"redis", "REDIS_EXTRA_FLAGS"}
			if got := source.of(&w.set().Spec.Template.Spec); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("the variable is %q, want %q", got, tc.want)
			}
			w.revert(targets, spec)
			w.expectThreads("1")
			if env := w.set().Spec.Template.Spec.Containers[1].Env; !slices.Equal(env, tc.env) {
				t.Errorf("the variables are %+v, want %+v", env, tc.env)
			}
			if want := []string{"redis-1", "redis-0", "redis-1", "redis-0"}; !slices.Equal(w.rolled, want) {
				t.Errorf("rolled %v, want %v", w.rolled, want)
			}
		})
	}
}

// A script that does not pass the variable on is found at the first pod, and no other one is replaced.
func TestIOThreadsWithoutEffect(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, 2, startedByScript())
	w.deaf = true
	spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
	targets := w.record(spec)
	var final error
	await.Until(t, "the injection fails", func() error {
		err := faulttest.Called(w.injector(spec).Inject(t.Context(), &targets[0]))
		w.settle()
		var steps *faulttest.Pending
		if err == nil || errors.As(err, &steps) {
			return errors.Join(errors.New("not yet"), err)
		}
		final = err
		return nil
	})
	if want := `the server of pod redis-1 has io-threads 1, io-threads-do-reads no, although the variable ` +
		`REDIS_EXTRA_FLAGS of container redis has it`; !strings.Contains(
		final.Error(), want) {
		t.Errorf("%v, want %s", final, want)
	}
	w.revert(targets, spec)
	if want := []string{"redis-1", "redis-1"}; !slices.Equal(w.rolled, want) {
		t.Errorf("rolled %v, want %v", w.rolled, want)
	}
	if env := w.set().Spec.Template.Spec.Containers[1].Env; len(env) > 0 {
		t.Errorf("the variables are %+v", env)
	}
}

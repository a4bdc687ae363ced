//go:build integration

package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestIOThreadsRolls(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, 3, nil)
	spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
	spec.Action.IOThreads.Reads = true
	old := w.set()
	targets := w.record(spec)
	for i := range targets {
		// of targets without an injection
		faulttest.Must(t, faulttest.Called(w.injector(spec).Revert(t.Context(), &targets[i])))
	}
	if len(w.rolled) > 0 || w.writes > 0 {
		t.Fatalf("before the injection %v were rolled, with %d writes", w.rolled, w.writes)
	}
	wantEffect(t, w.injector(spec), &targets[0], v1alpha1.EffectNotObserved,
		"still 1, io-threads-do-reads no instead of 2")
	progress := w.inject(targets, spec)
	if want := []string{"redis-2", "redis-1", "redis-0"}; !slices.Equal(w.rolled, want) {
		t.Errorf("rolled %v, want %v: the primary last", w.rolled, want)
	}
	if !slices.ContainsFunc(progress, func(m string) bool { return strings.HasPrefix(m, "1 of 3 pods rolled: ") }) {
		t.Errorf("progress was %q", progress)
	}
	w.expectThreads("2", "--appendonly", "no", "--io-threads", "2", "--io-threads-do-reads", "yes")
	if s := w.set().Spec.UpdateStrategy.Type; s != appsv1.OnDeleteStatefulSetStrategyType {
		t.Errorf("strategy %s", s)
	}
	if begun, err := w.injector(spec).Begun(t.Context(), &targets[0]); !begun || err != nil {
		t.Errorf("begun: %v, %v", begun, err)
	}
	wantEffect(t, w.injector(spec), &targets[0], v1alpha1.EffectInconclusive, "too few to judge by")
	w.busy()
	wantEffect(t, w.injector(spec), &targets[0], v1alpha1.EffectConfirmed,
		"io-threads-do-reads yes; since then threads handled")

	w.rolled = nil
	w.revert(targets, spec)
	if want := []string{"redis-2", "redis-1", "redis-0"}; !slices.Equal(w.rolled, want) {
		t.Errorf("rolled back %v, want %v", w.rolled, want)
	}
	w.expectThreads("1", "--appendonly", "no")
	if now := w.set(); now.Spec.UpdateStrategy.Type != old.Spec.UpdateStrategy.Type ||
		*now.Spec.UpdateStrategy.RollingUpdate.Partition != 0 {
		t.Errorf("strategy %+v", now.Spec.UpdateStrategy)
	}
	w.rolled = nil
	w.revert(targets, spec)
	if len(w.rolled) > 0 {
		t.Errorf("rolled again after the revert: %v", w.rolled)
	}
	wantEffect(t, w.injector(spec), &targets[0], v1alpha1.EffectNotObserved, "instead of 2")
}

// The operator crashes in each of its writes, before and after the write was done.
func TestIOThreadsAfterOperatorCrash(t *testing.T) {
	t.Parallel()
	spec := threadsFault(2, v1alpha1.ApplyRoll, v1alpha1.AllowTooFewCores)
	whole := newWorkload(t, 1, nil)
	targets := whole.record(spec)
	whole.inject(targets, spec)
	whole.revert(targets, spec)
	if whole.writes != 5 { // template, pod; template, pod, strategy
		t.Fatalf("%d writes", whole.writes)
	}
	for at := 1; at <= whole.writes; at++ {
		for _, afterward := range []bool{false, true} {
			t.Run(fmt.Sprintf("in write %d, done: %v", at, afterward), func(t *testing.T) {
				t.Parallel()
				w := newWorkload(t, 1, nil)
				targets := w.record(spec)
				w.dieAt, w.dieAfterward = at, afterward
				w.inject(targets, spec)
				w.expectThreads("2", "--appendonly", "no", "--io-threads", "2")
				w.revert(targets, spec)
				w.expectThreads("1", "--appendonly", "no")
				if s := w.set().Spec.UpdateStrategy.Type; s != appsv1.RollingUpdateStatefulSetStrategyType {
					t.Errorf("strategy %s", s)
				}
				if n := len(w.rolled); n != 2 {
					t.Errorf("%d pods were deleted, want 2", n)
				}
			})
		}
	}
}

func notReady(pod *corev1.Pod) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
}

// A roll that is stopped halfway is rolled back; a pod that does not start does not delay this.
func TestIOThreadsRollsBackFromTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, 2, nil)
	spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
	targets := w.record(spec)
	for len(w.rolled) == 0 {
		wantSteps(t, faulttest.Called(w.injector(spec).Inject(t.Context(), &targets[0])), "")
		w.settle()
	}
	pod, err := w.podNamed(t.Context(), "redis-1")
	faulttest.Must(t, err)
	w.Update(pod, notReady)
	wantSteps(t, faulttest.Called(w.injector(spec).Inject(t.Context(), &targets[0])), "pod redis-1 is not ready")
	w.revert(targets, spec)
	if want := []string{"redis-1", "redis-1"}; !slices.Equal(w.rolled, want) {
		t.Errorf("rolled %v, want %v", w.rolled, want)
	}
	w.expectThreads("1", "--appendonly", "no")
}

// A release during the fault, as by helm upgrade, stays. Of the fault nothing does: neither its options, nor the
// strategy with which no release is rolled out. What the release says is in no message: it may be a password.
func TestIOThreadsReleaseMeanwhile(t *testing.T) {
	t.Parallel()
	const secret = "Pl4nted-S3cret"
	for name, tc := range map[string]struct {
		before, release, after []string
		strategy               appsv1.StatefulSetUpdateStrategyType
	}{
		"other arguments": {
			before:   []string{"--appendonly", "no"},
			release:  []string{"--appendonly", "no", "--proc-title-template", secret},
			after:    []string{"--appendonly", "no", "--proc-title-template", secret},
			strategy: appsv1.RollingUpdateStatefulSetStrategyType,
		},
		"other arguments and the fault's": {
			before:   []string{"--appendonly", "no"},
			release:  []string{"--proc-title-template", secret, "--io-threads", "2", "--hz", "20"},
			after:    []string{"--proc-title-template", secret, "--hz", "20"},
			strategy: appsv1.RollingUpdateStatefulSetStrategyType,
		},
		"pods are deleted by hand": {
			before:   []string{"--appendonly", "no"},
			release:  []string{"--appendonly", "no", "--proc-title-template", secret},
			after:    []string{"--appendonly", "no", "--proc-title-template", secret},
			strategy: appsv1.OnDeleteStatefulSetStrategyType,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, 2, func(set *appsv1.StatefulSet) {
				containerIn(&set.Spec.Template.Spec, "redis").Args = tc.before
				if tc.strategy == appsv1.OnDeleteStatefulSetStrategyType {
					set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: tc.strategy}
				}
			})
			strategy := w.set().Spec.UpdateStrategy
			spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
			targets := w.record(spec)
			w.inject(targets, spec)
			set := w.set()
			containerIn(&set.Spec.Template.Spec, "redis").Args = tc.release
			set.Generation++
			faulttest.Must(t, w.Cluster.Update(t.Context(), set))
			if !slices.Contains(tc.release, "--io-threads") { // else it is as the fault has set it
				if err := faulttest.Called(w.injector(spec).Inject(t.Context(), &targets[0])); err == nil ||
					strings.Contains(err.Error(), secret) {
					t.Errorf("the injection goes on, or shows the release: %v", err)
				}
			}
			await.Until(t, "it is reverted", func() error {
				var left error
				for i := range targets {
					if err := faulttest.Called(w.injector(spec).Revert(t.Context(), &targets[i])); err != nil {
						left = err
						var steps *faulttest.Pending
						if !errors.As(err, &steps) || strings.Contains(err.Error(), secret) {
							t.Fatal(err)
						}
					}
				}
				faulttest.Must(t, w.pods.Settle(t.Context())) // the StatefulSet's controller rolls the release out
				return left
			})
			w.expectThreads("1", tc.after...)
			if now := w.set().Spec.UpdateStrategy; !apiequality.Semantic.DeepEqual(now, strategy) {
				t.Errorf("the strategy is %+v, before it was %+v", now, strategy)
			}
			warnings := w.injector(spec).(contract.Warner).Warnings(&targets[0])
			if len(warnings) != 1 || !strings.Contains(warnings[0], "StatefulSet redis while the fault acted") ||
				strings.Contains(warnings[0], secret) {
				t.Errorf("warnings %q, want one that the release stays, without what it says", warnings)
			}
			for i := range w.ports {
				pod, err := w.podNamed(t.Context(), fmt.Sprintf("redis-%d", i))
				faulttest.Must(t, err)
				if got := containerIn(&pod.Spec, "redis").Args; !slices.Equal(got, tc.after) {
					t.Errorf("%s runs with %q", pod.Name, got)
				}
			}
		})
	}
}

// A roll that is abandoned leaves nothing that keeps the StatefulSet's controller from rolling the pods, from the
// middle of either way on.
func TestIOThreadsAreLeft(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"injection", "revert"} {
		w := newWorkload(t, 2, nil)
		strategy := w.set().Spec.UpdateStrategy
		spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
		targets := w.record(spec)
		if way == "injection" {
			wantSteps(t, faulttest.Called(w.injector(spec).Inject(t.Context(), &targets[0])), "")
		} else {
			w.inject(targets, spec)
			wantSteps(t, faulttest.Called(w.injector(spec).Revert(t.Context(), &targets[0])), "")
		}
		writes := w.writes
		for i := range targets {
			faulttest.Must(t, w.injector(spec).(contract.Leaver).Leave(t.Context(), &targets[i]))
		}
		if n := w.writes - writes; n != 1 {
			t.Errorf("%s: %d writes", way, n)
		}
		faulttest.Must(t, w.pods.Settle(t.Context()))
		w.expectThreads("1", "--appendonly", "no")
		if now := w.set().Spec.UpdateStrategy; !apiequality.Semantic.DeepEqual(now, strategy) {
			t.Errorf("%s: the strategy is %+v, before it was %+v", way, now, strategy)
		}
	}
}

// Nothing is left to do of a StatefulSet that was deleted.
func TestIOThreadsOfADeletedStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorkload(t, 1, nil)
	spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
	targets := w.record(spec)
	w.inject(targets, spec)
	if by, want := w.injector(spec).ManualRevertCommand(&targets[0]),
		`kubectl -n shop patch statefulset redis --type strategic -p `+
			`'{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}},`+
			`"template":{"spec":{"containers":[{"args":["--appendonly","no"],"name":"redis"}]}}}}'`; by != want {
		t.Errorf("manual command: %s\nwant: %s", by, want)
	}
	w.Hooks.Delete = func(ctx context.Context, c client.WithWatch, object client.Object,
		options ...client.DeleteOption,
	) error {
		return c.Delete(ctx, object, options...)
	}
	faulttest.Must(t, w.Cluster.Delete(t.Context(), w.set()))
	faulttest.Must(t, faulttest.Called(w.injector(spec).Inject(t.Context(), &targets[0])))
	faulttest.Must(t, faulttest.Called(w.injector(spec).Revert(t.Context(), &targets[0])))
}

func TestIOThreadsRollRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		change   func(*appsv1.StatefulSet)
		after    func(*workload)
		reason   string
		wantText string
	}{
		{"an operator's", func(s *appsv1.StatefulSet) {
			s.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "redis.example.com/v1", Kind: "RedisCluster", Name: "shop", UID: "o", Controller: new(true)},
			}
		}, nil, v1alpha1.ReasonNotSupported, "belongs to RedisCluster shop (redis.example.com/v1)"},
		{"a script", func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[1].Command = []string{"sh", "-c", "exec redis-server"}
		}, nil, v1alpha1.ReasonNotSupported, "runs a script"},
		{"arguments without end", func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[1].Command = []string{
				"redis-server", "--appendonly", "no", "--proc-title-template",
				strings.Repeat("x", 4096),
			}
			s.Spec.Template.Spec.Containers[1].Args = slices.Repeat([]string{"--appendonly", "no"}, 300)
		}, nil, v1alpha1.ReasonNotSupported, "too long to be recorded"},
		{"a script of Bitnami's chart", func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[1].Command = []string{
				"/bin/bash", "-ec",
				"/opt/bitnami/scripts/start-scripts/start-node.sh",
			}
		}, nil, v1alpha1.ReasonNotSupported, "Add io-threads to the chart's value replica.extraFlags, or set"},
		{
			"a secret in the variable",
			startedByScript(corev1.EnvVar{Name: "REDIS_EXTRA_FLAGS", Value: "--maxclients 90 --masterauth s3cret"}),
			nil,
			v1alpha1.ReasonNotSupported,
			"--masterauth has its value in the variable REDIS_EXTRA_FLAGS of container redis of StatefulSet redis, which the record",
		},
		{
			"a variable from elsewhere",
			startedByScript(corev1.EnvVar{
				Name:      "REDIS_EXTRA_FLAGS",
				ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k"}},
			}),
			nil,
			v1alpha1.ReasonNotSupported,
			"takes REDIS_EXTRA_FLAGS from elsewhere (valueFrom)",
		},
		{"another roll", nil, func(w *workload) {
			set := w.set()
			set.Status.UpdateRevision = "redis-next"
			faulttest.Must(w.T, w.Cluster.Status().Update(w.T.Context(), set))
		}, v1alpha1.ReasonInjectionFailed, "is not of its latest revision"},
		{"a pod that is not ready", nil, func(w *workload) {
			pod, err := w.podNamed(w.T.Context(), "redis-0")
			faulttest.Must(w.T, err)
			w.Update(pod, notReady)
		}, v1alpha1.ReasonInjectionFailed, "pod redis-0 is not ready"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkload(t, 1, tc.change)
			if tc.after != nil {
				tc.after(w)
			}
			spec := threadsFault(2, v1alpha1.ApplyAuto, v1alpha1.AllowTooFewCores)
			targets, err := guard.Choose(t.Context(),
				faulttest.On(w.deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
				&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{}}, contract.Traits{})
			faulttest.Must(t, err)
			problem := faulttest.ProblemOf(t, w.injector(spec).Preflight(t.Context(), &targets[0]))
			if problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.wantText) ||
				problem.Lasting != (tc.reason == v1alpha1.ReasonNotSupported) {
				t.Errorf("%+v", problem)
			}
			if w.writes > 0 {
				t.Errorf("%d writes before any call was allowed", w.writes)
			}
		})
	}
}

//go:build integration

package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
)

// stop aborts what it names, and ends when that is over.
func TestStop(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begin(t, p.env, "run", "-f", p.file(loadAndKill))
	p.setLoad(v1alpha1.ReasonRunning, false, "")
	p.setFault(v1alpha1.ReasonActive, false, "", true)
	stop := begin(t, p.env, "stop", "kill", "load")
	p.eventually("spec.abort", func() bool { return p.load().Spec.Abort && p.kill().Spec.Abort })
	p.setFault(v1alpha1.ReasonReverting, false, "", true)
	p.setLoad(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive)
	p.setFault(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive, false)
	if code := stop.code(t); code != 0 || !strings.Contains(stop.out.String(), "redisfault/kill is over (Aborted: ") ||
		!strings.Contains(stop.out.String(), "redisloadtest/load is over (Aborted: ") {
		t.Errorf("exit code %d, stdout\n%s\nstderr\n%s", code, stop.out.String(), stop.err.String())
	}
	if code, out, _ := runCommand(t, p.env, "stop", "kill"); code != 0 || out != "redisfault/kill is over (Aborted)\n" {
		t.Errorf("again: exit code %d, %q", code, out)
	}
	if code, _, stderr := runCommand(t, p.env, "stop", "none"); code != cli.ExitError ||
		!strings.Contains(stderr,
			"there is no RedisLoadTest, RedisFault, RedisExperiment or RedisExperimentSchedule none in namespace "+p.namespace) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// stop --all annotates the namespace; whoever may not do so aborts the faults. --allow removes the annotation.
func TestStopAll(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begin(t, p.env, "run", "-f", p.file(loadAndKill))
	p.setFault(v1alpha1.ReasonActive, false, "", true)
	annotated := func() string {
		namespace := &corev1.Namespace{}
		if err := p.Get(t.Context(), client.ObjectKey{Name: p.namespace}, namespace); err != nil {
			t.Fatal(err)
		}
		return namespace.Annotations[v1alpha1.AnnotationStop]
	}
	code, _, stderr := runCommand(t, p.env, "stop", "--all", "--wait", "10s")
	if code != cli.ExitError || annotated() != "true" ||
		!strings.Contains(stderr, "not over yet: redisfault/kill (Active)") {
		t.Errorf("exit code %d, annotation %q, stderr\n%s", code, annotated(), stderr)
	}
	if code, _, stderr := runCommand(t, p.env, "stop", "--all", "--allow"); code != 0 || annotated() != "" {
		t.Errorf("exit code %d, annotation %q, stderr\n%s", code, annotated(), stderr)
	}
	p.grant("jane", rbacv1.PolicyRule{
		APIGroups: []string{"redquake.dev"},
		Resources: []string{"redisfaults"},
		Verbs:     []string{"get", "list", "watch", "patch"},
	})
	restricted := *p.config
	restricted.Impersonate.UserName = "jane"
	code, out, stderr := runCommand(t, []string{"KUBECONFIG=" + p.kubeconfig(&restricted)}, "stop", "--all", "--wait",
		"0s")
	if code != 0 || annotated() != "" || !p.kill().Spec.Abort || !strings.Contains(out, "redisfault/kill aborted") ||
		!strings.Contains(stderr, `cannot patch resource "namespaces"`) {
		t.Errorf("exit code %d, stdout %q, stderr\n%s", code, out, stderr)
	}
}

// stop --all --runs aborts whatever runs, and annotates nothing: what an uninstallation does before the operator goes.
func TestStopAllRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begin(t, p.env, "run", "-f", p.file(loadAndKill))
	p.setLoad(v1alpha1.ReasonRunning, false, "")
	p.setFault(v1alpha1.ReasonActive, false, "", true)
	late := func(name string) *v1alpha1.RedisFault {
		f := p.kill()
		return &v1alpha1.RedisFault{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace},
			Spec:       f.Spec,
		}
	}
	gone := late("gone")
	if err := p.Create(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	stop := begin(t, p.env, "stop", "--all", "--runs", "--namespaces", p.namespace)
	aborted := func(name string) bool {
		f := &v1alpha1.RedisFault{}
		return p.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, f) == nil && f.Spec.Abort
	}
	p.eventually("spec.abort", func() bool { return p.load().Spec.Abort && p.kill().Spec.Abort && aborted("gone") })
	// What is deleted meanwhile is no failure, and what is created, as a schedule would, is aborted, too.
	another := late("another")
	another.Spec.Abort = false
	if err := p.Create(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	p.setLoad(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive)
	p.setFault(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive, false)
	p.eventually("another spec.abort", func() bool { return aborted("another") })
	if err := p.Delete(t.Context(), another); err != nil {
		t.Fatal(err)
	}
	if code := stop.code(t); code != 0 || !strings.Contains(stop.out.String(), "redisfault/another aborted\n") {
		t.Errorf("exit code %d, stdout\n%s\nstderr\n%s", code, stop.out.String(), stop.err.String())
	}
	if code, out, _ := runCommand(t, p.env, "stop", "--all", "--runs"); code != 0 || out != "nothing runs\n" {
		t.Errorf("again: exit code %d, %q", code, out)
	}
	namespace := &corev1.Namespace{}
	if err := p.Get(t.Context(), client.ObjectKey{Name: p.namespace}, namespace); err != nil ||
		namespace.Annotations[v1alpha1.AnnotationStop] != "" {
		t.Errorf("annotations %v, %v", namespace.Annotations, err)
	}
}

// mark sets the annotation on a fault that waits for it, and writes the instant that the operator has taken.
func TestMark(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begin(t, p.env, "run", "-f", p.file(strings.Replace(loadAndKill, "{type: PodKill}", "{type: External}", 1)))
	p.setFault(v1alpha1.ReasonWaitingForSteady, false, "", false)
	if code, _, stderr := runCommand(t, p.env, "mark", "kill"); code != cli.ExitError ||
		!strings.Contains(stderr, "redisfault/kill does not wait for a mark (WaitingForSteady: ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	p.setFault(v1alpha1.ReasonWaitingForMark, false, "", false)
	mark := begin(t, p.env, "mark", "kill")
	p.eventually("the annotation", func() bool { return p.kill().Annotations[v1alpha1.AnnotationMark] == "now" })
	o := p.kill()
	before := o.DeepCopy()
	o.Status.InjectedAt = new(metav1.NewMicroTime(clitest.Start))
	if err := p.Status().Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if code := mark.code(t); code != 0 ||
		!strings.HasPrefix(mark.out.String(),
			"redisfault/kill: marked at "+clitest.Start.UTC().Format("2006-01-02T15:04:05")) {
		t.Errorf("exit code %d, stdout %q, stderr\n%s", code, mark.out.String(), mark.err.String())
	}
	if code, _, stderr := runCommand(t, p.env, "mark", "kill"); code != cli.ExitError ||
		!strings.Contains(stderr, "is marked already, at ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr := runCommand(t, p.env, "mark", "kill", "--at", "yesterday"); code != cli.ExitError ||
		!strings.Contains(stderr, `--at: "yesterday" is no instant such as `) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

//go:build integration

package main

import (
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/children"
)

// newSchedule creates the schedule nightly.
func (p *place) newSchedule() *v1alpha1.RedisExperimentSchedule {
	p.Helper()
	s := clitest.NewSchedule()
	s.Namespace, s.UID = p.namespace, ""
	if err := p.Create(p.Context(), s); err != nil {
		p.Fatal(err)
	}
	return s
}

// newRun creates a run of a schedule, as the operator does.
func (p *place) newRun(s *v1alpha1.RedisExperimentSchedule, at time.Time) *v1alpha1.RedisExperiment {
	p.Helper()
	run := children.ScheduledExperiment(s, at, "")
	if err := p.Create(p.Context(), run); err != nil {
		p.Fatal(err)
	}
	return run
}

// setRun writes the status of a run, as the operator does.
func (p *place) setRun(run *v1alpha1.RedisExperiment, reason string, complete bool) {
	p.Helper()
	before := run.DeepCopy()
	run.Status.Conditions = conditionsOf(run.Status.Conditions, reason, complete)
	if err := p.Status().Patch(p.Context(), run, client.MergeFrom(before)); err != nil {
		p.Fatal(err)
	}
}

// setSchedule writes the status of the schedule, as the operator does when it has seen its present spec.
func (p *place) setSchedule(status v1alpha1.RedisExperimentScheduleStatus) {
	p.Helper()
	s := &v1alpha1.RedisExperimentSchedule{}
	if !p.read("nightly", s) {
		p.Fatal("the schedule is gone")
	}
	before := s.DeepCopy()
	s.Status = status
	s.Status.ObservedGeneration = s.Generation
	s.Status.Conditions = []metav1.Condition{{
		Type:               v1alpha1.ConditionReady,
		Status:             metav1.ConditionTrue,
		Reason:             v1alpha1.ReasonScheduled,
		Message:            "as the operator says",
		LastTransitionTime: metav1.Now(),
	}}
	if err := p.Status().Patch(p.Context(), s, client.MergeFrom(before)); err != nil {
		p.Fatal(err)
	}
}

// stop suspends a schedule and aborts its run that is under way, and one that the operator creates before it has seen
// spec.suspend.
func TestStopSchedule(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.newSchedule()
	p.setSchedule(v1alpha1.RedisExperimentScheduleStatus{})
	ended, run := p.newRun(s, clitest.Start), p.newRun(s, clitest.Start.Add(24*time.Hour))
	p.setRun(ended, v1alpha1.ReasonSucceeded, true)
	p.setRun(run, v1alpha1.ReasonRunning, false)
	foreign := children.ScheduledExperiment(s, clitest.Start.Add(time.Hour), "") // of nobody, with such a name
	foreign.OwnerReferences = nil
	if err := p.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	aborted := func(run *v1alpha1.RedisExperiment) bool { return p.read(run.Name, run) && run.Spec.Abort }
	stop := begin(t, p.env, "stop", "nightly")
	p.eventually("spec.abort of the run", func() bool { return aborted(run) }, &stop.err)
	if !p.read("nightly", s) || !s.Spec.Suspend {
		t.Error("the schedule is not suspended")
	}
	late := p.newRun(s, clitest.Start.Add(48*time.Hour))
	p.setRun(run, v1alpha1.ReasonAborted, true)
	p.eventually("the end of the first run", func() bool {
		return strings.Contains(stop.out.String(),
			run.Name+" is over")
	}, &stop.out)
	p.setSchedule(v1alpha1.RedisExperimentScheduleStatus{})
	p.eventually("spec.abort of the other run", func() bool { return aborted(late) }, &stop.err)
	p.setRun(late, v1alpha1.ReasonAborted, true)
	want := "redisexperimentschedule/nightly suspended\n" +
		"redisexperiment/" + run.Name + " aborted\nredisexperiment/" + run.Name +
		" is over (Aborted: as the operator says)\n" +
		"redisexperiment/" + late.Name + " aborted\nredisexperiment/" + late.Name +
		" is over (Aborted: as the operator says)\n"
	if code := stop.code(t); code != 0 || stop.out.String() != want {
		t.Errorf("exit code %d, stdout\n%swant\n%sstderr\n%s", code, stop.out.String(), want, stop.err.String())
	}
	if aborted(ended) || aborted(foreign) {
		t.Error("another experiment was aborted")
	}
	if code, out, stderr := runCommand(t, p.env, "stop", "rexps/nightly"); code != 0 ||
		out != "redisexperimentschedule/nightly suspended\n" {
		t.Errorf("again: exit code %d, %q, %s", code, out, stderr)
	}
	out := ""
	p.eventually("what stop completes", func() bool { // a completion does not wait for a slow API server
		_, out, _ = runCommand(t, p.env, "__complete", "stop", "")
		return strings.Contains(out, foreign.Name+"\tRedisExperiment, NotObserved\n")
	})
	if strings.Contains(out, "nightly\t") {
		t.Errorf("stop completes\n%s", out)
	}
}

// A schedule never ends: what runs to an end names its runs instead. Its plan is that of the API server's dry run.
func TestScheduleOfACluster(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.newSchedule()
	p.setSchedule(v1alpha1.RedisExperimentScheduleStatus{
		Active:  "nightly-3",
		History: []v1alpha1.ScheduledRun{{Name: "nightly-1"}, {Name: "nightly-2"}},
	})
	for want, args := range map[string][]string{
		"redisexperimentschedule/nightly is a schedule, which never ends: watch one of its runs, such as " +
			"redisexperiment/nightly-3\n": {"watch", "nightly"},
		"redisexperimentschedule/nightly runs its template itself, at each of its times; what can be run again is one of " +
			"its runs, such as redisexperiment/nightly-2\n": {
			"rerun", "redisexperimentschedule/nightly",
		},
		"RedisExperimentSchedule nightly is compared by its runs, which are RedisExperiments: name one of them, such as " +
			"redisexperiment/nightly-2\n": {"compare", "rexps/nightly"},
		"there is no RedisLoadTest, RedisFault, RedisExperiment or RedisExperimentSchedule none in " +
			"namespace ": {"watch", "none"},
		"mark: redisexperimentschedule/nightly: the kind must be " +
			"RedisFault\n": {"mark", "redisexperimentschedule/nightly"},
	} {
		if code, out, stderr := runCommand(t, p.env, args...); code != cli.ExitError || out != "" ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %q, stderr\n%swant %s", args, code, out, stderr, want)
		}
	}
	if _, out, _ := runCommand(t, p.env, "__complete", "stop",
		""); !strings.Contains(out, "nightly\tRedisExperimentSchedule, Scheduled\n") {
		t.Errorf("stop completes\n%s", out)
	}
	if _, out, _ := runCommand(t, p.env, "__complete", "watch", ""); strings.Contains(out, "nightly\t") {
		t.Errorf("watch completes\n%s", out)
	}
	object := clitest.NewSchedule()
	object.Namespace, object.UID = "", ""
	file := p.file(clitest.AsYAML(t, object))
	if code, out, stderr := runCommand(t, p.env, "plan", "-f", file); code != 0 ||
		!strings.HasPrefix(out, "redisexperimentschedule/nightly ("+file+")\n  Exists     an object of this name exists") ||
		!strings.Contains(out, "\n  Schedule   0 3 * * * (Europe/Berlin): the first run is due at ") ||
		!strings.Contains(out, "\n  Cells      4: ") {
		t.Errorf("exit code %d, stdout\n%sstderr\n%s", code, out, stderr)
	}
	object.Name = strings.Repeat("n", 18)
	longest := s.DeepCopy()
	longest.Name, longest.ResourceVersion, longest.UID = object.Name, "", ""
	if err := p.Create(t.Context(), longest); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := runCommand(t, p.env, "plan", "-f", p.file(clitest.AsYAML(t, object))); code != 0 ||
		!strings.Contains(out, "  Exists  ") {
		t.Errorf("of the longest name: exit code %d, stdout\n%sstderr\n%s", code, out, stderr)
	}
	object.Spec.Template.Spec.Abort = true
	if code, out, _ := runCommand(t, p.env, "plan", "-f", p.file(clitest.AsYAML(t, object))); code != cli.ExitError ||
		!strings.Contains(out, "  Refused ") || !strings.Contains(out, "spec.template.spec: ") {
		t.Errorf("exit code %d, stdout\n%s", code, out)
	}
}

// A run of a schedule is run again as an experiment of its own, whatever the length of its name.
func TestRerunOfAScheduledRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := clitest.NewSchedule()
	s.Name, s.Namespace, s.UID = strings.Repeat("n", 18), p.namespace, ""
	if err := p.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	run := p.newRun(s, clitest.Start)
	p.setRun(run, v1alpha1.ReasonSucceeded, true)
	code, out, stderr := runCommand(t, p.env, "rerun", run.Name)
	if code != 0 {
		t.Fatalf("exit code %d, stderr\n%s", code, stderr)
	}
	again := &v1alpha1.RedisExperiment{}
	if !p.read(strings.TrimSuffix(strings.TrimPrefix(out, "redisexperiment/"), "\n"), again) ||
		children.ScheduleOf(again) != nil || again.Labels[v1alpha1.LabelSchedule] != "" {
		t.Errorf("%q is %+v", out, again.ObjectMeta)
	}
}

// Who may not read schedules finds everything else by its name alone.
func TestFindWithoutSchedules(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run := children.ScheduledExperiment(p.newSchedule(), clitest.Start, "")
	run.OwnerReferences, run.Name = nil, "single"
	if err := p.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	p.setRun(run, v1alpha1.ReasonSucceeded, true)
	restricted := *p.config
	restricted.Impersonate.UserName = "jane"
	env := []string{"KUBECONFIG=" + p.kubeconfig(&restricted)}
	p.grant("jane", rbacv1.PolicyRule{
		APIGroups: []string{"redquake.dev"},
		Resources: []string{"redisexperiments"},
		Verbs:     []string{"get"},
	})
	if code, out, stderr := runCommand(t, env, "stop", "single"); code != 0 ||
		out != "redisexperiment/single is over (Succeeded)\n" {
		t.Errorf("exit code %d, %q, stderr\n%s", code, out, stderr)
	}
	if code, _, stderr := runCommand(t, env, "stop", "nightly"); code != cli.ExitError ||
		!strings.Contains(stderr, `cannot get resource "redisexperimentschedules"`) {
		t.Errorf("exit code %d, stderr\n%s", code, stderr)
	}
}

package dryrun

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/manifest"
)

// The plan of a load names its measured time without the one by which its faults may extend it.
func TestPlanOfALoad(t *testing.T) {
	text, err := os.ReadFile("../../../../config/samples/loadtest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for until, want := range map[time.Duration]string{
		0: "  Time       3s ramp-up, 5s warm-up, 1m15s measured, it ends 1m23s after its start\n",
		3 *
			time.Minute: "  Time       3s ramp-up, 5s warm-up, 1m15s measured, it ends 1m23s after its start, up to 3m later " +
			"until its faults have settled\n",
	} {
		var test v1alpha1.RedisLoadTest
		if err := manifest.Decode(text, &test); err != nil {
			t.Fatal(err)
		}
		test.Spec.Load.UntilFaultsSettle = nil
		if until > 0 {
			test.Spec.Load.UntilFaultsSettle = &metav1.Duration{Duration: until}
		}
		var out strings.Builder
		if err := planLoad(&out, &test); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("with untilFaultsSettle %s the plan is\n%swant\n%s", until, out.String(), want)
		}
	}
}

// The plan of a schedule is its times and the experiment of its runs. What the schema cannot check is refused here.
func TestPlanOfASchedule(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) // clocks change in the night that follows
	plan := func(edit func(*v1alpha1.RedisExperimentScheduleSpec)) (string, error) {
		s := clitest.NewSchedule()
		edit(&s.Spec)
		if err := manifest.Admit(s); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := planSchedule(&out, &s.Spec, now)
		return out.String(), err
	}
	got, err := plan(func(*v1alpha1.RedisExperimentScheduleSpec) {})
	want := `  Schedule   0 3 * * * (Europe/Berlin): the first run is due at 2026-03-29T03:00:00+02:00
  Cells      4: appendfsync=no,test=set; appendfsync=no,test=get; appendfsync=always,test=set; appendfsync=always,test=get
  Runs       6 rounds of each cell, one run after the other
  Time       at least 2m: 5s of load in each run, and what starts and reverts before and after it
  Revert     settings and faults are reverted after each load test, before the next one begins; spec.suspend ends ` +
		`the schedule, spec.abort a run of it
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	if got, err := plan(func(s *v1alpha1.RedisExperimentScheduleSpec) {
		s.TimeZone = nil
		s.Suspend = true
	}); err != nil || !strings.HasPrefix(got,
		"  Schedule   0 3 * * * (UTC): there are no runs until spec.suspend is reset\n") {
		t.Errorf("suspended: %v\n%s", err, got)
	}
	one := func(s *v1alpha1.RedisExperimentScheduleSpec) {
		s.Template.Spec.Matrix = s.Template.Spec.Matrix[:1]
		s.Template.Spec.Matrix[0].Settings = s.Template.Spec.Matrix[0].Settings[:1]
	}
	for want, edit := range map[string]func(*v1alpha1.RedisExperimentScheduleSpec){
		"spec.timeZone: unknown time zone Mars/Phobos": func(s *v1alpha1.RedisExperimentScheduleSpec) {
			s.TimeZone = new("Mars/Phobos")
		},
		"spec.schedule: 0 3 30 2 *: there is no such date": func(s *v1alpha1.RedisExperimentScheduleSpec) {
			s.Schedule = "0 3 30 2 *"
		},
		"spec.template.spec.matrix: there is one cell": one,
	} {
		if _, err := plan(edit); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := plan(func(s *v1alpha1.RedisExperimentScheduleSpec) {
		one(s)
		s.CompareTo = &v1alpha1.ScheduleComparison{Run: "last"}
	}); err != nil {
		t.Errorf("one cell that is compared with the last run: %v", err)
	}
}

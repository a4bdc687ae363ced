package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/testing/reporttest"
)

var begin = time.Date(2026, 11, 22, 13, 10, 0, 0, time.UTC)

const twoCells = `
template:
  spec:
    target: {service: {name: redis, port: 6379}}
    load: {users: 1000, duration: 30s}
    workload: {benchmark: {tests: [set]}, keyspace: {prefix: "bench:", keys: 10000}}
matrix:
- {name: connections, path: client.connections, values: [50, 100]}
repeat: 4
order: Shuffled
compare: {figures: [throughput], require: NotWorse}
`

// scheduled is the report of 40 nights of which the last 15 are slower with one of the cells.
func scheduled(t testing.TB) *report.Document {
	t.Helper()
	d, err := nightly(t, nil).Report()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// nightly is a schedule after 40 nights, as the controller adds them to the history; edit changes each run before.
func nightly(t testing.TB, edit func(night int, run *history.Ended)) *Schedule {
	t.Helper()
	o := &v1alpha1.RedisExperimentSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop"},
		Spec: v1alpha1.RedisExperimentScheduleSpec{
			Schedule: "0 3 * * *", CompareTo: &v1alpha1.ScheduleComparison{Run: "last", Confirm: true},
		},
	}
	if err := yaml.UnmarshalStrict([]byte(twoCells), &o.Spec.Template.Spec); err != nil {
		t.Fatal(err)
	}
	o.Status.Verdict = v1alpha1.VerdictPass
	o.Status.Conditions = []metav1.Condition{
		{
			Type:    v1alpha1.ConditionReady,
			Status:  metav1.ConditionTrue,
			Reason:  v1alpha1.ReasonScheduled,
			Message: "the next run is at 2027-01-01T03:00:00Z",
		},
	}
	h := &history.History{Version: history.Version}
	random := rand.New(rand.NewPCG(8, 8))
	cells := []string{"connections=50", "connections=100"}
	for night := range 40 {
		begins := begin.Add(time.Duration(night) * 24 * time.Hour)
		record := &experiment.Record{Version: experiment.RecordVersion, Cells: cells}
		for round := 1; round <= 4; round++ {
			for cell := range cells {
				v := 24500 * math.Exp(0.01*random.NormFloat64())
				if night >= 25 && cell == 1 {
					v *= 0.8
				}
				record.Runs = append(record.Runs, experiment.RecordedRun{
					Cell:   cell,
					Round:  round,
					Values: map[string]experiment.Value{"throughput": {Value: v}},
				})
			}
		}
		run := history.Ended{Figures: []compare.Figure{compare.Throughput}, Run: history.Run{
			Name: fmt.Sprintf("nightly-%d", begins.Unix()/60), Scheduled: begins, Start: begins, End: begins.Add(time.Hour),
			Template: "t", Verdict: v1alpha1.VerdictPass, Complete: true, Record: record,
		}}
		if edit != nil {
			edit(night, &run)
		}
		h.Add(run)
	}
	return &Schedule{Object: o, History: h}
}

// The history of a schedule names the night since which a figure is worse, marks it, and fails in JUnit although the
// last run has passed.
func TestScheduleReport(t *testing.T) {
	t.Parallel()
	d := scheduled(t)
	all := reporttest.Forms(t, d)
	night := begin.Add(25 * 24 * time.Hour)
	for form, part := range map[string]string{
		"md":   "has been worse since " + night.Format("2 Jan, 15:04") + fmt.Sprintf(" (nightly-%d)", night.Unix()/60),
		"html": `class="tm ws"`,
		"xml":  `<failure message="throughput -`,
		"csv":  fmt.Sprintf(`"nightly-%d, connections=100",throughput,perSecond,`, night.Unix()/60),
	} {
		if !strings.Contains(all[form], part) {
			t.Errorf("%s lacks %q:\n%s", form, part, all[form][:min(3000, len(all[form]))])
		}
	}
	if n := strings.Count(all["html"], `class="tm `); n != 1 {
		t.Errorf("%d changes are marked, want 1", n)
	}
	if err := reporttest.Schema(t).Validate(reporttest.Decoded(t, all["json"])); err != nil {
		t.Errorf("the JSON is not that of docs/report.schema.json: %v", err)
	}
	reporttest.Golden(t, "schedule.md", all["md"])
	reporttest.Golden(t, "schedule.html", all["html"])
}

// A regression that could not be confirmed is said to be so; a repetition that is due, too; without a run there is no
// history.
func TestScheduleStates(t *testing.T) {
	t.Parallel()
	unconfirmed := nightly(t, nil)
	unconfirmed.History.Regressions[0].Unconfirmed = "nightly-1e: Aborted"
	confirming := nightly(t, nil)
	confirming.History.Regressions = nil
	confirming.History.Confirming = &history.Confirming{
		Run:      confirming.History.Runs[39].Name,
		Attempts: 1,
		Why:      "it failed",
		Regressed: []history.RegressedFigure{
			{Cell: "connections=50", Figure: "throughput", Level: 24500, Message: "8% lower"},
		},
	}
	quiet := nightly(t, func(_ int, run *history.Ended) {
		run.Record.Runs = run.Record.Runs[:0]
		run.Complete = false
	})
	empty := nightly(t, nil)
	empty.History, empty.Object.Status = nil, v1alpha1.RedisExperimentScheduleStatus{}
	wanted := map[string]*Schedule{
		"No run has ended yet": empty,
		"unconfirmed: the run could not be repeated (nightly-1e: Aborted)": unconfirmed,
		"shows a regression, and is repeated before it is called one":      confirming,
		"Nothing is worse than before in 40 runs":                          quiet,
	}
	for want, s := range wanted {
		d, err := s.Report()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(d.Finding.String(), wording.NBSP, " "); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		reporttest.Forms(t, d)
	}
}

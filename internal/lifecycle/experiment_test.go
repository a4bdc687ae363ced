package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

func TestNextForExperiment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	ready := Experiment{Noted: true, Checked: true, Started: true, Total: 8, Recorded: 3}
	with := func(o Experiment, edit func(*Experiment)) Experiment {
		edit(&o)
		return o
	}
	during := func(edit func(*ExperimentRun)) Experiment {
		o := ready
		o.Run = &ExperimentRun{Name: "e-0004", Cell: "a=1", Aborting: true}
		edit(o.Run)
		return o
	}
	refused := &problem.Problem{Reason: v1alpha1.ReasonRefused, Message: "no", Lasting: true}
	for _, test := range []struct {
		name   string
		seen   Experiment
		action ExperimentAction
		reason string
	}{
		{"new, not noted", Experiment{}, ExperimentNote, v1alpha1.ReasonChecking},
		{
			"a copy of one that had begun",
			Experiment{Restored: "a copy", Suspend: true},
			ExperimentFinish,
			v1alpha1.ReasonRestored,
		},
		{
			"the note was removed from a run",
			with(ready, func(o *Experiment) { o.Noted = false }),
			ExperimentBegin,
			v1alpha1.ReasonRunning,
		},
		{"new", Experiment{Noted: true}, ExperimentCheck, v1alpha1.ReasonChecking},
		{"new, suspended", Experiment{Suspend: true}, ExperimentWait, v1alpha1.ReasonSuspended},
		{"new, aborted", Experiment{Abort: true}, ExperimentFinish, v1alpha1.ReasonAborted},
		{"dry runs", Experiment{Noted: true, Checks: []string{"x"}}, ExperimentWait, v1alpha1.ReasonChecking},
		{
			"more dry runs",
			Experiment{Noted: true, Checks: []string{"x"}, Lacks: true},
			ExperimentCheck,
			v1alpha1.ReasonChecking,
		},
		{"refused", Experiment{Problem: refused}, ExperimentFail, v1alpha1.ReasonRefused},
		{"checked", Experiment{Noted: true, Checked: true, Total: 8}, ExperimentStart, v1alpha1.ReasonStarting},
		{"started", ready, ExperimentBegin, v1alpha1.ReasonRunning},
		{
			"suspended between runs",
			with(ready, func(o *Experiment) { o.Suspend = true }),
			ExperimentWait,
			v1alpha1.ReasonSuspended,
		},
		{
			"aborted between runs",
			with(ready, func(o *Experiment) { o.Abort = true }),
			ExperimentFinish,
			v1alpha1.ReasonAborted,
		},
		{"a run failed", with(ready, func(o *Experiment) { o.Failure = "p99" }), ExperimentFail, v1alpha1.ReasonRunFailed},
		{"not reverted", with(ready, func(o *Experiment) { o.Problem = refused }), ExperimentFail, v1alpha1.ReasonRefused},
		{"all recorded", with(ready, func(o *Experiment) { o.Recorded = 8 }), ExperimentFinish, v1alpha1.ReasonSucceeded},
		{
			"a setting is missing",
			during(func(r *ExperimentRun) { r.Missing = true }),
			ExperimentApply,
			v1alpha1.ReasonApplyingSettings,
		},
		{"a setting is not in force", during(func(r *ExperimentRun) {
			r.Open = []string{"s"}
			r.Waiting = "s waits"
		}), ExperimentWait, v1alpha1.ReasonApplyingSettings},
		{"settings in force", during(func(r *ExperimentRun) {
			r.Open = []string{
				"s",
			}
		}), ExperimentLoad, v1alpha1.ReasonRunning},
		{"loaded", during(func(r *ExperimentRun) {
			r.Loaded = true
			r.Open = []string{"t", "s"}
		}), ExperimentWait, v1alpha1.ReasonRunning},
		{"load ended", during(func(r *ExperimentRun) {
			r.Loaded = true
			r.Ended = true
			r.Open = []string{"s"}
		}), ExperimentWait, v1alpha1.ReasonReverting},
		{"everything ended", during(func(r *ExperimentRun) {
			r.Loaded = true
			r.Ended = true
		}), ExperimentCollect, v1alpha1.ReasonRunning},
		{"a setting failed, another is in force", during(func(r *ExperimentRun) {
			r.Over = "s2 failed"
			r.Open = []string{"s1"}
			r.Aborting = false
		}), ExperimentAbort, v1alpha1.ReasonReverting},
		{"that one is reverted", during(func(r *ExperimentRun) {
			r.Over = "s2 failed"
			r.Open = []string{"s1"}
		}), ExperimentWait, v1alpha1.ReasonReverting},
		{
			"a setting failed, and nothing is left",
			during(func(r *ExperimentRun) { r.Over = "s1 failed" }),
			ExperimentCollect,
			v1alpha1.ReasonRunning,
		},
		{"suspended during a run", with(during(func(r *ExperimentRun) {
			r.Loaded = true
			r.Open = []string{"t"}
		}), func(o *Experiment) { o.Suspend = true }), ExperimentWait, v1alpha1.ReasonRunning},
		{"aborted during a run", with(during(func(r *ExperimentRun) {
			r.Loaded = true
			r.Open = []string{"t"}
			r.Aborting = false
		}), func(o *Experiment) { o.Abort = true }), ExperimentAbort, v1alpha1.ReasonReverting},
		{"deleted", with(during(func(*ExperimentRun) {}), func(o *Experiment) { o.Deleting = true }), ExperimentWait, ""},
		{"finished", Experiment{Finished: true, Problem: refused}, ExperimentWait, ""},
		{"finished, kept", Experiment{Finished: true, CompletedAt: now, TTL: new(time.Minute)}, ExperimentWait, ""},
		{
			"finished, expired",
			Experiment{Finished: true, CompletedAt: now.Add(-time.Minute), TTL: new(time.Minute)},
			ExperimentExpire,
			"",
		},
	} {
		if d := NextForExperiment(test.seen, now); d.Action != test.action || d.Reason != test.reason {
			t.Errorf("%s: %+v, want %s, %s", test.name, d, test.action, test.reason)
		}
	}
}

// Whatever was observed: nothing of the next run is created before the one under way is recorded, and no run begins
// unless all cells were checked.
func TestExperimentNeverOverlapsRuns(t *testing.T) {
	t.Parallel()
	flags := 9
	for bits := range 1 << flags {
		is := func(n int) bool { return bits>>n&1 == 1 }
		o := Experiment{Suspend: is(0), Abort: is(1), Checked: is(2), Started: is(2) && is(3), Total: 2, Recorded: 1}
		if is(4) {
			o.Run = &ExperimentRun{Loaded: is(5), Ended: is(6), Missing: is(7)}
			if is(8) {
				o.Run.Open = []string{"x"}
			}
		}
		d := NextForExperiment(o, time.Time{})
		begins := slices.Contains([]ExperimentAction{ExperimentBegin, ExperimentStart}, d.Action)
		if begins && (o.Run != nil || !o.Checked || o.Abort || o.Suspend) {
			t.Errorf("%+v, %+v: %+v", o, o.Run, d)
		}
		if ends := d.Action == ExperimentCollect ||
			d.Action == ExperimentFinish; ends && o.Run != nil && len(o.Run.Open) > 0 {
			t.Errorf("%+v, %+v: %+v although something is open", o, o.Run, d)
		}
	}
}

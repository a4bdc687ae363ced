package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/crontab"
	"github.com/redquake/redquake/internal/problem"
)

var three = time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC) // a Monday

// nightly is a schedule of 3:00, whose next time is three.
func nightly(t *testing.T, change func(*Schedule)) Schedule {
	t.Helper()
	times, err := crontab.Parse("0 3 * * *", nil)
	if err != nil {
		t.Fatal(err)
	}
	o := Schedule{Times: times, Created: three.Add(-time.Hour), Next: three, Aborting: true, Taken: map[int64]bool{}}
	if change != nil {
		change(&o)
	}
	return o
}

const day = 24 * time.Hour

func TestNextForSchedule(t *testing.T) {
	running := func(o *Schedule) { o.Active, o.Aborting = []string{"n-1"}, false }
	taken := func(at ...time.Time) func(*Schedule) {
		return func(o *Schedule) {
			for _, at := range at {
				o.Taken[crontab.Minutes(at)] = true
			}
		}
	}
	both := func(all ...func(*Schedule)) func(*Schedule) {
		return func(o *Schedule) {
			for _, f := range all {
				f(o)
			}
		}
	}
	replace := func(o *Schedule) { o.Replace = true }
	for name, c := range map[string]struct {
		change  func(*Schedule)
		now     time.Time
		action  ScheduleAction
		reason  string
		at      time.Time // of the run
		next    time.Time
		skipped int
		why     string
	}{
		"not yet": {
			nil,
			three.Add(-time.Second),
			ScheduleWait,
			v1alpha1.ReasonScheduled,
			time.Time{},
			three,
			0,
			"",
		},
		"due": {nil, three, ScheduleCreate, v1alpha1.ReasonRunning, three, three.Add(day), 0, ""},
		"first": {
			func(o *Schedule) { o.Next = time.Time{} },
			three,
			ScheduleCreate,
			v1alpha1.ReasonRunning,
			three,
			three.Add(day),
			0,
			"",
		},
		"created at that time": {func(o *Schedule) {
			o.Next = time.Time{}
			o.Created = three
		}, three, ScheduleWait, v1alpha1.ReasonScheduled, time.Time{}, three.Add(day), 0, ""},
		"created later": {func(o *Schedule) {
			o.Next = time.Time{}
			o.Created = three.Add(day)
		}, three.Add(time.Hour), ScheduleWait, v1alpha1.ReasonScheduled, time.Time{}, three.Add(day), 0, ""},
		"late": {
			nil, three.Add(20 * time.Hour), ScheduleCreate, v1alpha1.ReasonRunning, three,
			three.Add(day), 0, "",
		},
		"missed": {
			nil, three.Add(3*day + time.Hour), ScheduleCreate, v1alpha1.ReasonRunning,
			three.Add(3 * day), three.Add(4 * day), 3, "3 scheduled times were missed",
		},
		"a year": {
			nil, three.Add(365 * day), ScheduleCreate, v1alpha1.ReasonRunning,
			three.Add(365 * day), three.Add(366 * day), 100, "more than 100 scheduled times",
		},
		"created by a dead one": {
			both(taken(three), running), three.Add(time.Minute), ScheduleAdvance,
			v1alpha1.ReasonScheduled, three, three.Add(day), 0, "",
		},
		"one of those missed": {
			taken(three.Add(day)), three.Add(2 * day), ScheduleCreate, v1alpha1.ReasonRunning,
			three.Add(2 * day), three.Add(3 * day), 1, "1 scheduled",
		},
		"in time": {func(o *Schedule) {
			o.Deadline = new(
				time.Minute)
		}, three.Add(time.Minute), ScheduleCreate, v1alpha1.ReasonRunning, three, three.Add(day), 0, ""},
		"too late": {
			func(o *Schedule) {
				o.Deadline = new(
					time.Minute)
			},
			three.Add(time.Minute + 1),
			ScheduleAdvance,
			v1alpha1.ReasonScheduled,
			time.Time{},
			three.Add(day),
			1,
			"startingDeadlineSeconds",
		},
		"another one runs": {
			running,
			three,
			ScheduleAdvance,
			v1alpha1.ReasonScheduled,
			time.Time{},
			three.Add(day),
			1,
			"n-1 has not ended",
		},
		"another one runs, no due": {
			running,
			three.Add(-time.Second),
			ScheduleWait,
			v1alpha1.ReasonRunning,
			time.Time{},
			three,
			0,
			"",
		},
		"replace": {
			both(running, replace),
			three,
			ScheduleAbort,
			v1alpha1.ReasonReverting,
			time.Time{},
			three,
			0,
			"",
		},
		"replace, reverting": {func(o *Schedule) {
			o.Active = []string{"n-1"}
			o.Replace = true
		}, three, ScheduleWait, v1alpha1.ReasonReverting, time.Time{}, three, 0, ""},
		"replaced, to be recorded": {func(o *Schedule) {
			o.Ended = []string{"n-1"}
			o.Replace = true
		}, three, ScheduleRecord, v1alpha1.ReasonRunning, time.Time{}, three, 0, ""},
		"replaced, to be deleted": {func(o *Schedule) {
			o.Excess = []string{"n-1"}
			o.Replace = true
		}, three, ScheduleDelete, v1alpha1.ReasonRunning, time.Time{}, three, 0, ""},
		"a repetition, replace": {
			both(running, replace, func(o *Schedule) { o.Repeating = true }),
			three,
			ScheduleWait,
			v1alpha1.ReasonRunning,
			time.Time{},
			three,
			0,
			"",
		},
		"due, to be repeated": {
			func(o *Schedule) { o.Confirm = "n-1" },
			three,
			ScheduleCreate,
			v1alpha1.ReasonRunning,
			three,
			three.Add(day),
			0,
			"",
		},
		"suspended, to be recorded": {func(o *Schedule) {
			o.Suspend = true
			o.Ended = []string{"n-1"}
		}, three, ScheduleRecord, v1alpha1.ReasonSuspended, time.Time{}, three, 0, ""},
		"suspended": {
			func(o *Schedule) { o.Suspend = true },
			three,
			ScheduleWait,
			v1alpha1.ReasonSuspended,
			time.Time{},
			three,
			0,
			"",
		},
		"suspended, not due": {
			func(o *Schedule) { o.Suspend = true },
			three.Add(-day),
			ScheduleWait,
			v1alpha1.ReasonSuspended,
			time.Time{},
			three.Add(-day).Add(day),
			0,
			"",
		},
		"to be repeated": {
			func(o *Schedule) { o.Confirm = "n-1" },
			three.Add(-time.Hour),
			ScheduleConfirm,
			v1alpha1.ReasonRunning,
			time.Time{},
			three,
			0,
			"",
		},
		"being repeated": {
			both(running, func(o *Schedule) { o.Confirm = "n-1" }),
			three.Add(-time.Hour),
			ScheduleWait,
			v1alpha1.ReasonRunning,
			time.Time{},
			three,
			0,
			"",
		},
		"no repetition suspended": {func(o *Schedule) {
			o.Confirm = "n-1"
			o.Suspend = true
		}, three.Add(-time.Hour), ScheduleWait, v1alpha1.ReasonSuspended, time.Time{}, three, 0, ""},
		"invalid": {func(o *Schedule) {
			o.Problem = &problem.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Lasting: true,
			}
		}, three, ScheduleWait, v1alpha1.ReasonInvalidSpec, time.Time{}, three, 0, ""},
		"invalid with a run": {both(running, func(o *Schedule) {
			o.Problem = &problem.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Lasting: true,
			}
		}), three, ScheduleWait, v1alpha1.ReasonInvalidSpec, time.Time{}, three, 0, ""},
		"history of another version": {func(o *Schedule) {
			o.Problem = &problem.Problem{
				Reason: v1alpha1.ReasonResultsNotStorable,
			}
		}, three, ScheduleWait, v1alpha1.ReasonResultsNotStorable, time.Time{}, three, 0, ""},
		"set back over its runs": {both(taken(three, three.Add(day)), func(o *Schedule) {
			o.Next = three.Add(2 *
				day)
		}), three.Add(-time.Hour), ScheduleWait, v1alpha1.ReasonScheduled, time.Time{}, three.Add(2 * day), 0, ""},
		"set back by years": {func(o *Schedule) {
			o.Next = three.Add(2000 *
				day)
		}, three.Add(-time.Hour), ScheduleWait, v1alpha1.ReasonScheduled, time.Time{}, three, 0, ""},
		"deleted": {func(o *Schedule) {
			o.Deleting = true
			o.Ended = []string{"n-1"}
		}, three, ScheduleWait, "", time.Time{}, time.Time{}, 0, ""},
	} {
		d := NextForSchedule(nightly(t, c.change), c.now)
		if d.Action != c.action || d.Reason != c.reason || !d.At.Equal(c.at) || !d.Next.Equal(c.next) ||
			d.Skipped != c.skipped || (d.Why == "") != (c.why == "") || !strings.Contains(d.Why, c.why) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A schedule that was changed applies from the next time on: nothing runs at once, although its times have passed since
// the last run.
func TestChangedSchedule(t *testing.T) {
	times, err := crontab.Parse("0 4 * * *", nil)
	if err != nil {
		t.Fatal(err)
	}
	weekly := nightly(t, func(o *Schedule) { o.Times, o.Next = times, three.Add(7*day) })
	if d := NextForSchedule(weekly, three.Add(2*day+5*time.Hour)); d.Action != ScheduleWait ||
		!d.Next.Equal(three.Add(3*day+time.Hour)) {
		t.Errorf("%+v", d)
	}
}

// A clock that is set wakes nobody: a schedule is looked at again although its time is far away.
func TestScheduleIsLookedAt(t *testing.T) {
	if d := NextForSchedule(nightly(t, nil),
		three.Add(-10*time.Hour)); d.Until.Sub(three.Add(-10*time.Hour)) != schedulePoll {
		t.Errorf("until %s", d.Until)
	}
	if d := NextForSchedule(nightly(t, nil), three.Add(-time.Minute)); !d.Until.Equal(three) {
		t.Errorf("until %s", d.Until)
	}
}

// After a year without an operator, a run of each minute is decided in bounded work.
func TestAbsenceOfAYear(t *testing.T) {
	times, err := crontab.Parse("* * * * *", nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 100 {
		d := NextForSchedule(nightly(t, func(o *Schedule) { o.Times = times }), three.Add(365*day+time.Second))
		if d.Action != ScheduleCreate || !d.At.Equal(three.Add(365*day)) || d.Skipped != 100 {
			t.Fatalf("%+v", d)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("100 decisions took %s", took)
	}
}

package lifecycle

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/crontab"
	"github.com/redquake/redquake/internal/problem"
)

// ScheduleAction is an action on a RedisExperimentSchedule.
type ScheduleAction string

// The actions.
const (
	ScheduleWait ScheduleAction = "Wait" // nothing to do before Until
	// record a run that has ended, compare it with those before
	ScheduleRecord ScheduleAction = "Record"
	ScheduleDelete ScheduleAction = "Delete" // delete a run that is recorded and not kept
	ScheduleAbort  ScheduleAction = "Abort"  // end the run that is under way
	ScheduleCreate ScheduleAction = "Create" // create the run of a scheduled time
	// create the repetition of a run that shows a regression
	ScheduleConfirm ScheduleAction = "Confirm"
	ScheduleAdvance ScheduleAction = "Advance" // go on to the next scheduled time
)

// Schedule is what was observed of a RedisExperimentSchedule.
type Schedule struct {
	Deleting, Suspend bool
	Problem           *problem.Problem // the spec cannot work, or the history cannot be used

	Times   *crontab.Times // nil with a problem
	Created time.Time
	// the first scheduled time that was not served; zero = none was determined yet
	Next     time.Time
	Deadline *time.Duration // how late a run may start; nil = however late
	// a run that is due ends the one that is under way; else that one keeps it from being created
	Replace bool

	Taken     map[int64]bool // minutes of the scheduled times that have a run
	Active    []string       // runs that have not ended
	Aborting  bool           // all of them were asked to end
	Repeating bool           // one of them is the repetition of another run
	Ended     []string       // runs that have ended and are not recorded, the first one first
	Excess    []string       // runs that are recorded and not to be kept
	Confirm   string         // the run that is to be repeated; "" = none
}

// ScheduleDecision is the next action on a schedule.
type ScheduleDecision struct {
	Decision[ScheduleAction]
	Run     string    // of Record, Delete and Confirm
	At      time.Time // of Create and Advance: the scheduled time that has a run then; zero = none has
	Next    time.Time // the first scheduled time that is not served after this
	Skipped int       // scheduled times that get no run
	Why     string    // they do not
}

// mostMissed is how many missed times are counted, so that the work after a long absence is
// bounded.
const mostMissed = 100

// schedulePoll is how often a schedule is looked at although nothing has changed: a clock that is
// set wakes nobody.
const schedulePoll = 10 * time.Minute

// problemPoll is how often a schedule is looked at that cannot create runs: nobody says when a
// history can be used again.
const problemPoll = time.Minute

// NextForSchedule decides what to do next with a schedule. Runs never overlap; of the times that
// were missed only the latest one gets a run.
func NextForSchedule(o Schedule, now time.Time) ScheduleDecision {
	switch {
	case o.Deleting:
		// garbage collection deletes its runs
		return ScheduleDecision{Decision: Decision[ScheduleAction]{Action: ScheduleWait}}
	case len(o.Ended) > 0:
		return o.run(ScheduleRecord, o.Ended[0], "recording "+o.Ended[0])
	case len(o.Excess) > 0:
		return o.run(ScheduleDelete, o.Excess[0], "deleting "+o.Excess[0])
	case o.Problem != nil:
		return o.wait(o.Problem.Reason, o.Problem.Message, now.Add(problemPoll))
	}
	return onTime(o, now)
}

func (o *Schedule) to(a ScheduleAction, reason, message string) ScheduleDecision {
	return ScheduleDecision{
		Decision: Decision[ScheduleAction]{
			Action:  a,
			Reason:  reason,
			Message: message,
		},
		Next: o.Next,
	}
}

func (o *Schedule) wait(reason, message string, until time.Time) ScheduleDecision {
	d := o.to(ScheduleWait, reason, message)
	d.Until = until
	return d
}

func (o *Schedule) run(a ScheduleAction, name, message string) ScheduleDecision {
	reason := v1alpha1.ReasonRunning
	if o.Suspend {
		reason = v1alpha1.ReasonSuspended
	}
	d := o.to(a, reason, message)
	d.Run = name
	return d
}

// due are the scheduled times that have passed and were not served.
type due struct {
	at     time.Time // the latest one; zero = there is none
	missed int       // those before it without a run
	more   bool      // there are more
	next   time.Time // the one to come
}

func (o *Schedule) due(now time.Time) due {
	from := o.Next
	if from.IsZero() {
		from = earlier(o.Created, now).Add(time.Nanosecond)
	}
	d := due{next: o.Times.Next(now)}
	// A clock that was set back meets times again that have a run.
	for n := 0; o.Taken[crontab.Minutes(d.next)] && n <= len(o.Taken); n++ {
		d.next = o.Times.Next(d.next)
	}
	last, passed := o.Times.Last(from, now)
	if from.After(now) || !passed {
		return d
	}
	d.at = last
	before := o.Times.Between(from, last, mostMissed+1)
	d.more = len(before) > mostMissed
	for _, at := range before[:min(len(before), mostMissed)] {
		if !o.Taken[crontab.Minutes(at)] {
			d.missed++
		}
	}
	return d
}

// onTime creates a run when its time has come.
func onTime(o Schedule, now time.Time) ScheduleDecision {
	d := o.due(now)
	upcoming := "the next run is due at " + o.Times.Text(d.next)
	switch under := join(o.Active); {
	case o.Suspend:
		s := o.wait(v1alpha1.ReasonSuspended, "spec.suspend keeps further runs from being created",
			now.Add(schedulePoll))
		if d.at.IsZero() {
			s.Next = d.next
		}
		return s
	case o.Confirm != "" && under == "" && d.at.IsZero(): // a run that is due shows it as well
		s := o.run(ScheduleConfirm, o.Confirm,
			"repeating "+o.Confirm+", in which something has regressed")
		s.Next = d.next
		return s
	case d.at.IsZero():
		s := o.wait(v1alpha1.ReasonScheduled, upcoming, earlier(d.next, now.Add(schedulePoll)))
		if under != "" {
			s.Reason, s.Message = v1alpha1.ReasonRunning, under+"; "+upcoming
		}
		s.Next = d.next
		return s
	case o.Taken[crontab.Minutes(d.at)]: // created by a process that could not store it
		return o.advance(d, d.missed, "")
	case o.Deadline != nil && now.Sub(d.at) > *o.Deadline:
		return o.advance(d, d.missed+1,
			fmt.Sprintf("the run of %s could not start within startingDeadlineSeconds", o.Times.Text(d.at)))
	}
	return o.start(d, now)
}

// start creates the run that is due, unless another one is under way.
func (o *Schedule) start(d due, now time.Time) ScheduleDecision {
	switch under := join(o.Active); {
	case under == "":
		s := o.to(ScheduleCreate, v1alpha1.ReasonRunning, "creating the run of "+o.Times.Text(d.at))
		s.At, s.Next, s.Skipped, s.Why = d.at, d.next, d.missed, missed(d)
		return s
	case !o.Replace:
		return o.advance(d, d.missed+1,
			fmt.Sprintf("the run of %s is skipped: %s has not ended", o.Times.Text(d.at), under))
	case o.Repeating && !o.Aborting:
		return o.wait(v1alpha1.ReasonRunning,
			"the run of "+o.Times.Text(d.at)+" waits for "+under+", which repeats another one",
			now.Add(schedulePoll))
	case !o.Aborting:
		return o.to(ScheduleAbort, v1alpha1.ReasonReverting,
			"ending "+under+": the run of "+o.Times.Text(d.at)+" is due")
	}
	return o.wait(v1alpha1.ReasonReverting,
		"the run of "+o.Times.Text(d.at)+" waits for "+join(o.Active)+" to end", now.Add(schedulePoll))
}

// advance goes on to the next scheduled time.
func (o *Schedule) advance(d due, skipped int, why string) ScheduleDecision {
	s := o.to(ScheduleAdvance, v1alpha1.ReasonScheduled,
		"the next run is due at "+o.Times.Text(d.next))
	s.Next, s.Skipped, s.Why = d.next, skipped, why
	if o.Taken[crontab.Minutes(d.at)] {
		s.At = d.at
	}
	if d.more {
		s.Why = missed(d)
	}
	return s
}

// missed says of how many times the latest one alone gets a run; "" = there is one.
func missed(d due) string {
	switch {
	case d.more:
		return fmt.Sprintf(
			"more than %d scheduled times were missed: check the operator, its clock and spec.startingDeadlineSeconds",
			mostMissed)
	case d.missed > 0:
		return fmt.Sprintf("%d scheduled times were missed", d.missed)
	}
	return ""
}

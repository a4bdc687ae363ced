package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// ExperimentAction is an action on a RedisExperiment without a schedule.
type ExperimentAction string

// The actions.
const (
	ExperimentWait ExperimentAction = "Wait" // nothing to do before Until
	// store in the metadata that it has begun, which is left where the status is lost
	ExperimentNote ExperimentAction = "Note"
	// have the API server check what every cell will create, and create the dry runs that are missing
	ExperimentCheck ExperimentAction = "Check"
	// all cells can run: draw the seed, delete the dry runs
	ExperimentStart   ExperimentAction = "Start"
	ExperimentBegin   ExperimentAction = "Begin"   // store which run is next
	ExperimentApply   ExperimentAction = "Apply"   // create the next setting of the run
	ExperimentLoad    ExperimentAction = "Load"    // create its load test and its faults
	ExperimentAbort   ExperimentAction = "Abort"   // end what is under way of it
	ExperimentCollect ExperimentAction = "Collect" // record its figures, delete old children
	ExperimentFinish  ExperimentAction = "Finish"  // comparison, verdict, condition Complete
	// the same as far as possible, and the condition Failed
	ExperimentFail   ExperimentAction = "Fail"
	ExperimentExpire ExperimentAction = "Expire" // delete the object: its TTL has passed
)

// Experiment is what was observed of a RedisExperiment without a schedule.
type Experiment struct {
	Deleting, Suspend, Abort bool
	Finished                 bool
	CompletedAt              time.Time
	TTL                      *time.Duration
	Noted                    bool // its metadata says that it has begun
	// why it must not run: it is a copy of an experiment that had begun; "" = it may
	Restored string

	Problem  *problem.Problem // the spec cannot work, or the experiment cannot go on
	Checked  bool             // the API server and all dry runs have accepted what will be created
	Checks   []string         // dry runs that have not ended
	Lacks    bool             // dry runs are still to be created, and may be now
	Started  bool             // the seed is drawn
	Total    int              // runs that there are to be
	Recorded int              // those that are recorded
	Failure  string           // with stopOnFailure: the run that failed; "" = none
	Run      *ExperimentRun   // nil = none is under way
}

// ExperimentRun is what was observed of the run that is under way.
type ExperimentRun struct {
	Name    string // of its load test
	Cell    string //
	Waiting string // the setting that is not in force yet, and why
	Missing bool   // a setting is to be created
	Loaded  bool   // its load test was created, and its faults
	// why it will not be measured: a setting failed, or its load test was deleted; "" = it will
	Over     string
	Ended    bool     // its load test has ended
	Open     []string // its load test, faults and settings that have not ended
	Aborting bool     // all of them were asked to end, or end by themselves
}

// NextForExperiment decides what to do next with a RedisExperiment. Nothing runs before all cells
// were checked; a run begins once everything of the one before is reverted and its figures are
// recorded.
func NextForExperiment(o Experiment, now time.Time) Decision[ExperimentAction] {
	switch {
	case o.Deleting:
		// garbage collection deletes its children, and faults are reverted by their finalizers
		return Decision[ExperimentAction]{Action: ExperimentWait}
	case o.Finished:
		return experimentAfterFinish(o, now)
	case o.Restored != "" && !o.Started:
		return step(ExperimentFinish, v1alpha1.ReasonRestored, o.Restored)
	case o.Run != nil:
		return duringRun(o, now)
	}
	if d, ended := betweenRuns(o); ended {
		return d
	}
	switch {
	case o.Suspend:
		return step(ExperimentWait, v1alpha1.ReasonSuspended, suspended(o))
	case !o.Noted && !o.Started:
		return step(ExperimentNote, v1alpha1.ReasonChecking, "checking what every cell will create")
	case !o.Checked && len(o.Checks) > 0 && !o.Lacks:
		return step(ExperimentWait, v1alpha1.ReasonChecking,
			"dry runs of settings and faults: "+join(o.Checks))
	case !o.Checked:
		return step(ExperimentCheck, v1alpha1.ReasonChecking, "checking what every cell will create")
	case !o.Started:
		return step(ExperimentStart, v1alpha1.ReasonStarting, "")
	}
	return step(ExperimentBegin, v1alpha1.ReasonRunning,
		fmt.Sprintf("%d of %d runs have ended", o.Recorded, o.Total))
}

func suspended(o Experiment) string {
	if o.Started {
		return fmt.Sprintf("spec.suspend holds the experiment after %d of %d runs", o.Recorded, o.Total)
	}
	return "spec.suspend holds the experiment"
}

// betweenRuns ends an experiment that has no further run.
func betweenRuns(o Experiment) (d Decision[ExperimentAction], ended bool) {
	switch {
	case o.Problem != nil && o.Problem.Lasting:
		return step(ExperimentFail, o.Problem.Reason, o.Problem.Message), true
	case o.Abort:
		return step(ExperimentFinish, v1alpha1.ReasonAborted,
			fmt.Sprintf("ended by spec.abort after %d of %d runs", o.Recorded, o.Total)), true
	case o.Failure != "":
		return step(ExperimentFail, v1alpha1.ReasonRunFailed, "spec.stopOnFailure: "+o.Failure), true
	case o.Started && o.Recorded >= o.Total:
		return step(ExperimentFinish, v1alpha1.ReasonSucceeded, ""), true
	}
	return d, false
}

// duringRun decides on the run that is under way: settings, load, and the end of everything.
func duringRun(o Experiment, now time.Time) Decision[ExperimentAction] {
	r := o.Run
	stopping := o.Abort || o.Problem != nil && o.Problem.Lasting || r.Over != ""
	switch {
	case stopping && len(r.Open) > 0 && !r.Aborting:
		return step(ExperimentAbort, v1alpha1.ReasonReverting, cmp.Or(r.Over, "ending run "+r.Name))
	case stopping && len(r.Open) > 0, r.Loaded && len(r.Open) > 0:
		return underWay(r, now)
	case stopping, r.Loaded:
		return step(ExperimentCollect, v1alpha1.ReasonRunning, "recording run "+r.Name)
	case r.Waiting != "":
		return Decision[ExperimentAction]{
			Action:  ExperimentWait,
			Reason:  v1alpha1.ReasonApplyingSettings,
			Message: r.Waiting,
			Until:   now.Add(runPoll),
		}
	case r.Missing:
		return step(ExperimentApply, v1alpha1.ReasonApplyingSettings, r.Cell)
	}
	return step(ExperimentLoad, v1alpha1.ReasonRunning, r.Cell)
}

func underWay(r *ExperimentRun, now time.Time) Decision[ExperimentAction] {
	d := Decision[ExperimentAction]{
		Action:  ExperimentWait,
		Reason:  v1alpha1.ReasonRunning,
		Message: r.Name + ": " + r.Cell,
		Until:   now.Add(runPoll),
	}
	if r.Ended || r.Over != "" {
		d.Reason, d.Message = v1alpha1.ReasonReverting, "waiting for "+join(r.Open)
	}
	return d
}

// runPoll is how often a run is looked at although nothing of it has changed.
const runPoll = time.Minute

func experimentAfterFinish(o Experiment, now time.Time) Decision[ExperimentAction] {
	if o.TTL == nil {
		return Decision[ExperimentAction]{Action: ExperimentWait}
	}
	if end := o.CompletedAt.Add(*o.TTL); now.Before(end) {
		return Decision[ExperimentAction]{Action: ExperimentWait, Until: end}
	}
	return Decision[ExperimentAction]{Action: ExperimentExpire}
}

func step(a ExperimentAction, reason, message string) Decision[ExperimentAction] {
	return Decision[ExperimentAction]{
		Action:  a,
		Reason:  reason,
		Message: message,
	}
}

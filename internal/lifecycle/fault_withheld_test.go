package lifecycle

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// While no fault may begin, one that has not begun waits, and makes no load; abort, deadline and the end of its load
// end it all the same. What has begun goes on.
func TestWithheldFault(t *testing.T) {
	withheld := func(change func(*Fault)) func(*Fault) {
		return func(o *Fault) {
			o.Withheld = &problem.Problem{Reason: v1alpha1.ReasonPolicyInvalid, Message: "line 2"}
			if change != nil {
				change(o)
			}
		}
	}
	for name, tc := range map[string]struct {
		fault  Fault
		action FaultAction
		reason string
	}{
		"ready": {waitingFault(withheld(nil)), FaultWait, v1alpha1.ReasonPolicyInvalid},
		"its load is not ready": {
			waitingFault(withheld(func(o *Fault) { o.Load = LoadPending })),
			FaultWait,
			v1alpha1.ReasonPolicyInvalid,
		},
		"it has no load yet": {waitingFault(withheld(func(o *Fault) {
			o.Load = LoadMissing
			o.OwnLoad = true
		})), FaultWait, v1alpha1.ReasonPolicyInvalid},
		"its load has ended": {
			waitingFault(withheld(func(o *Fault) { o.Load = LoadEnded })),
			FaultFail,
			v1alpha1.ReasonLoadTestEnded,
		},
		"suspended": {
			waitingFault(withheld(func(o *Fault) { o.Suspend = true })),
			FaultWait,
			v1alpha1.ReasonSuspended,
		},
		"aborted": {
			waitingFault(withheld(func(o *Fault) { o.Abort = true })),
			FaultFinish,
			v1alpha1.ReasonAborted,
		},
		"overdue": {waitingFault(withheld(func(o *Fault) {
			o.Deadline = at(29 *
				time.Second)
		})), FaultFail, v1alpha1.ReasonDeadlineExceeded},
		"active": {activeFault(withheld(nil)), FaultHold, v1alpha1.ReasonActive},
		"over the limit": {
			waitingFault(func(o *Fault) { o.OverLimit = "3 of 3 faults act" }),
			FaultWait,
			v1alpha1.ReasonWaitingForPolicy,
		},
		"over the limit, not steady any more": {waitingFault(func(o *Fault) {
			o.OverLimit, o.Steady = "3 of 3 faults act", false
		}), FaultWait, v1alpha1.ReasonWaitingForSteady},
	} {
		if got := NextForFault(tc.fault, at(30*time.Second)); got.Action != tc.action || got.Reason != tc.reason {
			t.Errorf("%s: %s, %s (%s), want %s, %s", name, got.Action, got.Reason, got.Message, tc.action, tc.reason)
		}
	}
}

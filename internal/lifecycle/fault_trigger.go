package lifecycle

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// onTrigger decides on a fault whose load runs: it waits for those that it is to act beside, for its
// time or for steady throughput, and for its turn.
func onTrigger(o Fault, now time.Time) Decision[FaultAction] {
	if d, decided := onPartners(o, now); decided {
		return d
	}
	if o.AfterBeside != nil {
		if at := o.ActSince.Add(*o.AfterBeside); now.Before(at) {
			return look(FaultWait, v1alpha1.ReasonWaitingForTime,
				fmt.Sprintf("spec.trigger.afterBeside: %s after the faults in spec.beside act",
					*o.AfterBeside), earlier(at, now.Add(FaultPoll)))
		}
		return onTurn(o, now)
	}
	if o.After != nil {
		if at := o.LoadStart.Add(*o.After); now.Before(at) {
			return look(FaultWait, v1alpha1.ReasonWaitingForTime,
				fmt.Sprintf("spec.trigger.after: %s after the load's start", *o.After), at)
		}
	} else if !o.Steady {
		limit := o.WarmUntil.Add(o.SteadyWithin)
		if !now.Before(limit) {
			return act(FaultFail, v1alpha1.ReasonNotSteady,
				fmt.Sprintf("spec.trigger.timeout: not steady for %s within %s: %s", o.SteadyFor,
					o.SteadyWithin, o.SteadyWhy))
		}
		return look(FaultWait, v1alpha1.ReasonWaitingForSteady, o.SteadyWhy, now.Add(FaultPoll))
	}
	return onTurn(o, now)
}

// onPartners decides on a fault while those that it is to act beside do not act. Each of them ends
// in bounded time; one that does not exist may never come.
func onPartners(o Fault, now time.Time) (d Decision[FaultAction], decided bool) {
	why := "spec.beside: " + cmp.Or(o.TooLate, o.Missing, o.NotYet)
	switch {
	case o.TooLate != "":
		return act(FaultFail, v1alpha1.ReasonNotBeside, why+because(o.SteadyWhy)), true
	case o.Missing != "" && !now.Before(o.WarmUntil.Add(o.patience())):
		return act(FaultFail, v1alpha1.ReasonNotBeside, waitedInVain(why, o.patience())), true
	case o.Missing != "", o.NotYet != "":
		return look(FaultWait, v1alpha1.ReasonWaitingForFault, why, now.Add(FaultPoll)), true
	}
	return d, false
}

// onTurn decides on a fault that waits for nothing but others.
func onTurn(o Fault, now time.Time) Decision[FaultAction] {
	if o.Blocked != "" {
		return look(FaultWait, v1alpha1.ReasonWaitingForFault, o.Blocked, now.Add(turnPoll))
	}
	if o.OverLimit != "" {
		return look(FaultWait, v1alpha1.ReasonWaitingForPolicy, o.OverLimit, now.Add(turnPoll))
	}
	if d, decided := inTrouble(o, now); decided {
		return d
	}
	if o.External && o.MarkTrouble != "" {
		return look(FaultWait, v1alpha1.ReasonInvalidMark, o.MarkTrouble, now.Add(FaultPoll))
	}
	if o.External {
		return look(FaultAwait, v1alpha1.ReasonWaitingForMark, waitingForMark, now.Add(FaultPoll))
	}
	if o.Taken {
		return look(FaultWait, v1alpha1.ReasonWaitingForSteady,
			fmt.Sprintf("another fault is about to be injected on RedisLoadTest %s", o.LoadName),
			now.Add(FaultPoll))
	}
	return look(FaultRecord, v1alpha1.ReasonInjecting,
		"choosing the targets and recording what they have", now.Add(time.Second))
}

// inTrouble decides on a fault whose targets cannot be chosen now.
func inTrouble(o Fault, now time.Time) (d Decision[FaultAction], decided bool) {
	if o.Trouble != nil && now.Sub(o.TroubleSince) > o.patience() {
		return act(FaultFail, o.Trouble.Reason, waitedInVain(o.Trouble.Message, o.patience())), true
	}
	if o.Problem != nil {
		return look(FaultWait, o.Problem.Reason, o.Problem.Message, now.Add(time.Second)), true
	}
	return d, false
}

// turnPoll is how often a fault checks whether it still waits for another one, or for a limit; a
// change of another one triggers it earlier.
const turnPoll = 30 * time.Second

// withheldPoll is how often a fault checks whether faults may begin again.
const withheldPoll = 10 * time.Second

package soak

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
)

// untrueFaults compares the statuses of faults with what was seen of their effects.
func untrueFaults(f *Facts) (broken []Violation) {
	for _, s := range f.Faults {
		if s.Gone { // the last version that was seen may not be the last one
			continue
		}
		for _, p := range f.contradictions(s) {
			broken = append(broken, Violation{
				Judgement: Untrue,
				Object:    s.World + "/" + s.Object.Name,
				Expected:  p[0],
				Seen:      p[1],
			})
		}
	}
	return broken
}

// contradictions are pairs of what a fault's status says, and what is against it.
func (f *Facts) contradictions(s Seen[*v1alpha1.RedisFault]) [][2]string {
	if !ended(s.Object.Status.Conditions) {
		return nil
	}
	return append(inItself(s.Object), f.againstSight(s)...)
}

// inItself are those within a status of a fault that has ended.
func inItself(fault *v1alpha1.RedisFault) (found [][2]string) {
	if holding := fault.Status.Holding; holding != nil && *holding {
		found = append(found, [2]string{"it has ended", "status.holding is true: others wait for it"})
	}
	for _, t := range fault.Status.Targets {
		switch {
		case t.RevertAbandoned:
			found = append(found, [2]string{"reverted", fmt.Sprintf("the revert at %s was abandoned: %s", t.Pod, t.RevertError)})
		case t.Revert != nil && t.InjectedAt != nil && t.RevertedAt == nil && !fault.Spec.DryRun:
			found = append(found, [2]string{
				"it has ended",
				fmt.Sprintf("target %s was injected at %s and never reverted", t.Pod, clock(t.InjectedAt.Time)),
			})
		}
	}
	return found
}

// againstSight are those of a status with what was seen from outside.
func (f *Facts) againstSight(s Seen[*v1alpha1.RedisFault]) (found [][2]string) {
	mark, status := markOf(s.World, s.Object), &s.Object.Status
	if mark == "" {
		return nil
	}
	seen := f.Marks[mark]
	if seen == nil {
		if looks := f.looksWhileActive(s); status.Effect == v1alpha1.EffectConfirmed &&
			s.Object.Spec.Action.Type == v1alpha1.FaultConfig && looks >= 3 {
			found = append(found, [2]string{
				"effect Confirmed: " + status.EffectEvidence,
				fmt.Sprintf("not seen in %d looks while it was active", looks),
			})
		}
		return found
	}
	if s.Object.Spec.DryRun {
		found = append(found, [2]string{
			"nothing was injected: a dry run",
			fmt.Sprintf("%q seen at %s", mark, clock(seen.First)),
		})
	}
	if status.RevertedAt != nil && seen.Last.After(status.RevertedAt.Add(sightLag)) {
		found = append(found, [2]string{
			"reverted at " + clock(status.RevertedAt.Time),
			fmt.Sprintf("%q seen at %s", mark, clock(seen.Last)),
		})
	}
	if status.InjectedAt == nil && !s.Object.Spec.DryRun {
		found = append(found, [2]string{
			"never injected: " + describe(status.Conditions),
			fmt.Sprintf("%q seen at %s", mark, clock(seen.First)),
		})
	}
	return found
}

// looksWhileActive is how often the servers of a fault were asked while its status says that it was active on them.
func (f *Facts) looksWhileActive(s Seen[*v1alpha1.RedisFault]) (looks int) {
	for _, t := range s.Object.Status.Targets {
		if t.ActiveAt == nil || t.RevertedAt == nil {
			continue
		}
		from, to := t.ActiveAt.Add(sightLag), t.RevertedAt.Add(-sightLag)
		for _, at := range f.Polls[s.World+"/"+t.Pod] {
			if at.After(from) && at.Before(to) {
				looks++
			}
		}
	}
	return looks
}

// untrueLoadTests holds that a load test that succeeded has a beginning, an end, figures and a record.
func untrueLoadTests(f *Facts) (broken []Violation) {
	for _, s := range f.LoadTests {
		c := meta.FindStatusCondition(s.Object.Status.Conditions, v1alpha1.ConditionComplete)
		if s.Gone || c == nil || c.Reason != v1alpha1.ReasonSucceeded {
			continue
		}
		status, missing := &s.Object.Status, []string{}
		if status.StartTime == nil || status.CompletionTime == nil {
			missing = append(missing, "start or completion time")
		}
		if status.Summary == nil {
			missing = append(missing, "summary")
		}
		if status.Results == nil || !f.Records[s.Object.Namespace+"/"+status.Results.ConfigMap] {
			missing = append(missing, "record")
		}
		if len(missing) > 0 {
			broken = append(broken, Violation{
				Judgement: Untrue,
				Object:    s.World + "/" + s.Object.Name,
				Expected:  "Succeeded, with figures",
				Seen:      "without " + strings.Join(missing, ", "),
			})
		}
	}
	return broken
}

// panics also counts managers that ended without being killed.
func panics(f *Facts) (broken []Violation) {
	for _, line := range f.Panics {
		broken = append(broken, Violation{
			Judgement: Panicked,
			Object:    "manager",
			Expected:  "no panic",
			Seen:      line,
		})
	}
	for _, r := range f.Restarts {
		if !f.explained(r) {
			broken = append(broken, Violation{
				Judgement: Panicked,
				Object:    r.Pod,
				Expected:  "ends only when killed, or when the Lease or the API server is lost",
				Seen:      fmt.Sprintf("ended at %s: %s, exit code %d: %s", clock(r.At), r.Reason, r.Code, r.Said),
			})
		}
	}
	return broken
}

// explained reports whether a restart was due: it was killed, or a process without a fault to revert has lost the Lease
// or the API server, and says so.
func (f *Facts) explained(r Restart) bool {
	const sigkill = 128 + 9
	return slices.ContainsFunc(f.Events, func(e Done) bool {
		if e.Began.IsZero() || r.At.Before(e.Began.Add(-5*time.Second)) ||
			r.At.After(latest(e.Began, e.Ended).Add(time.Minute)) {
			return false
		}
		switch e.Kind {
		case ManagerKilled:
			return e.Target == r.Pod && r.Code == sigkill
		case LeaseTaken, ManagerPaused, APIServerPaused, EtcdPaused, NodeSlowed:
			return r.Code == 1 && r.Said != ""
		}
		return false
	})
}

// Growth that is none: what the runtime keeps of a busy time.
const (
	growthFactor     = 1.5
	growthGoroutines = 40
	growthMemory     = 64 << 20 // bytes
)

func growth(f *Facts) (broken []Violation) {
	first, last := f.AtFirst, f.AtLast
	if first.Goroutines == 0 || last.Goroutines == 0 {
		return []Violation{
			{
				Judgement: Growth,
				Object:    "manager",
				Expected:  "figures of the idle manager, before and after",
				Seen:      fmt.Sprintf("%+v and %+v", first, last),
			},
		}
	}
	if limit := max(growthFactor*first.Goroutines, first.Goroutines+growthGoroutines); last.Goroutines > limit {
		broken = append(broken, Violation{
			Judgement: Growth,
			Object:    "goroutines",
			Expected:  fmt.Sprintf("at most %.0f, after %.0f at first", limit, first.Goroutines),
			Seen:      fmt.Sprintf("%.0f", last.Goroutines),
		})
	}
	if limit := max(growthFactor*first.Memory, first.Memory+growthMemory); last.Memory > limit {
		broken = append(broken, Violation{
			Judgement: Growth,
			Object:    "memory",
			Expected:  fmt.Sprintf("at most %.0f bytes, after %.0f at first", limit, first.Memory),
			Seen:      fmt.Sprintf("%.0f", last.Memory),
		})
	}
	return broken
}

// leaderless finds times in which nobody led, and nothing disturbed the operator any more.
func leaderless(f *Facts) (broken []Violation) {
	for i := 0; i < len(f.Able); i++ {
		from := f.Able[i].At
		for i < len(f.Able) && !f.Able[i].OK {
			i++
		}
		until := f.Able[min(i, len(f.Able)-1)].At
		undisturbed := f.lastDisturbed(from, until)
		if took := until.Sub(undisturbed); took > leaderLimit {
			broken = append(broken, Violation{
				Judgement: NoLeader,
				Object:    "manager",
				Expected:  fmt.Sprintf("a leader within %s of %s", leaderLimit, clock(undisturbed)),
				Seen:      fmt.Sprintf("none until %s, for %s", clock(until), took.Round(time.Second/10)),
			})
		}
	}
	return broken
}

// lastDisturbed is when the operator could go on, in a time without a leader: its beginning, or when the last
// disturbance in it was over.
func (f *Facts) lastDisturbed(from, until time.Time) time.Time {
	last := from
	for _, e := range f.Events {
		over := e.Ended
		switch e.Kind {
		case ManagerKilled, ManagerPodDeleted: // those end, for the plan, once another one leads
			over = e.Began
		case ManagerPaused, LeaseTaken, APIServerPaused, EtcdPaused, KubeletPaused, NodeSlowed:
		default:
			continue
		}
		if e.Began.Before(until) {
			last = latest(last, over)
		}
	}
	return last
}

// answers finds a manager that leads and does nothing: its Lease is renewed, and a new object has no status.
func answers(f *Facts) (broken []Violation) {
	for _, p := range f.Pulses {
		if took, answered := f.took(p); took > pulseLimit {
			seen := fmt.Sprintf("after %s in which the Lease was renewed", took.Round(time.Second/10))
			if !answered {
				seen = "none, " + seen
			}
			broken = append(broken, Violation{
				Judgement: NoAnswer,
				Object:    p.Name,
				Expected:  fmt.Sprintf("a status within %s while a manager leads; created at %s", pulseLimit, clock(p.Created)),
				Seen:      seen,
			})
		}
	}
	switch {
	case f.FirstAnswer < 0:
		broken = append(broken, Violation{
			Judgement: NoAnswer,
			Object:    "at the end",
			Expected:  "a status within " + answerLimit.String(),
			Seen:      "none",
		})
	case f.FirstAnswer > answerLimit:
		broken = append(broken, Violation{
			Judgement: NoAnswer,
			Object:    "at the end",
			Expected:  "a status within " + answerLimit.String(),
			Seen:      "after " + f.FirstAnswer.String(),
		})
	}
	return broken
}

// took is how long a new object waited for a status while a manager led: the longest time in which one did. Each
// manager that begins to lead reads the cluster and reverts what is overdue first, so those times are not added up. A
// look that was not answered promptly is no interruption.
func (f *Facts) took(p Pulse) (time.Duration, bool) {
	until := p.Answered
	if until.IsZero() {
		until = p.Watched
	}
	return f.Able.Longest(p.Created, until, interruption), !p.Answered.IsZero()
}

// notDone are events that could not be carried out. What their object has ended before is none: the plan is drawn
// without knowing what happens.
func notDone(f *Facts) (broken []Violation) {
	for _, e := range f.Events {
		if e.Err != "" {
			broken = append(broken, Violation{
				Judgement: NotDone,
				Object:    strings.Trim(e.World+"/"+e.Name, "/"),
				Expected:  e.Label(),
				Seen:      e.Err,
			})
		}
	}
	return broken
}

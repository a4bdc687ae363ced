package soak

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Judgement is which rule was broken.
type Judgement string

// The rules.
const (
	// something is left of an object that no longer exists, or runs for one that has ended
	Orphan     Judgement = "orphan"
	Unreverted Judgement = "unreverted"  // Redis or its workload is not as before
	LateRevert Judgement = "late revert" // an effect was there longer than asked, while the operator could revert it
	// an object has neither completed nor failed, or a deleted one is still there
	Unended  Judgement = "status, no end"
	Untrue   Judgement = "status, untrue"   // a status contradicts what was seen, or itself
	Panicked Judgement = "panic"            // or a manager ended without being told to
	Growth   Judgement = "growth"           // of goroutines or memory
	NoAnswer Judgement = "no answer"        // a manager that leads does nothing for a new object
	NoLeader Judgement = "no leader"        // no manager renews the Lease, though nothing keeps it from that
	NotDone  Judgement = "plan not carried" // an event could not be carried out: nothing is known of it
)

// Limits of the judge. Where the operator could not act, the time does not count.
const (
	revertLimit = 10 * time.Second // until an effect is gone
	rollLimit   = time.Minute      // the same, if a pod that is being replaced is waited for first
	settling    = 10 * time.Second // until a manager that leads anew has read the cluster, and reverted what is overdue
	// until a manager leads, after the last disturbance: a killed one is started again after 20 s at most, and waits for
	// the Lease
	leaderLimit  = time.Minute
	pulseLimit   = 30 * time.Second // until a new object has a status
	interruption = 5 * time.Second  // between two looks at a manager that leads all the time
	answerLimit  = 5 * time.Second  // until a new object has a status at the end
	sightLag     = 1500 * time.Millisecond
)

// Violation is a broken rule.
type Violation struct {
	Judgement Judgement `json:"judgement"`
	Object    string    `json:"object"` // world/name, or what it is about
	Expected  string    `json:"expected"`
	Seen      string    `json:"seen"`
	Evidence  string    `json:"evidence,omitempty"` // a file
}

// Judge applies every rule.
func Judge(f *Facts) (broken []Violation) {
	for _, rule := range []func(*Facts) []Violation{
		orphans, unreverted, lateReverts, unended, untrueFaults,
		untrueLoadTests, panics, growth, leaderless, answers, notDone,
	} {
		broken = append(broken, rule(f)...)
	}
	return broken
}

func orphans(f *Facts) (broken []Violation) {
	for _, left := range f.Left {
		broken = append(broken, Violation{
			Judgement: Orphan,
			Object:    left,
			Expected:  "gone with its owner",
			Seen:      "it exists after all load tests, faults and experiments are gone",
		})
	}
	for _, pod := range f.Running {
		broken = append(broken, Violation{
			Judgement: Orphan,
			Object:    pod,
			Expected:  "ended with its load test",
			Seen:      "it runs",
		})
	}
	return broken
}

func unreverted(f *Facts) (broken []Violation) {
	keys := maps.Clone(f.Before)
	maps.Copy(keys, f.After)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, had := f.Before[key]
		now, ok := f.After[key]
		if was != now || had != ok {
			broken = append(broken, Violation{
				Judgement: Unreverted,
				Object:    key,
				Expected:  was,
				Seen:      now,
			})
		}
	}
	return broken
}

// asked is when a user first asked for the end of an object: by an abort, a deletion, or the stop annotation of its
// world.
func (f *Facts) asked(world string, object metav1.Object) (at time.Time) {
	for _, e := range f.Events {
		if e.World != world || e.Began.IsZero() || e.Kind != Stop && e.Name != object.GetName() {
			continue
		}
		switch e.Kind {
		case Abort, Delete:
		case Stop:
			if e.Began.Before(object.GetCreationTimestamp().Time) {
				continue
			}
		default:
			continue
		}
		if at.IsZero() || e.Began.Before(at) {
			at = e.Began
		}
	}
	return at
}

// due is when a fault has to be over, and whether that needed the API server; zero = not known.
func (f *Facts) due(s Seen[*v1alpha1.RedisFault]) (at time.Time, byAPI bool) {
	fault := s.Object
	asked := f.asked(s.World, fault)
	complete := time.Time{}
	for _, t := range fault.Status.Targets {
		if t.ActiveAt == nil {
			return asked, true // not complete: only its user ends it so soon
		}
		complete = latest(complete, t.ActiveAt.Time)
	}
	if complete.IsZero() || fault.Spec.Duration == nil {
		return asked, true
	}
	end := complete.Add(fault.Spec.Duration.Duration)
	if !asked.IsZero() && asked.Before(end) {
		return asked, true
	}
	return end, false
}

func lateReverts(f *Facts) (broken []Violation) {
	for _, s := range f.Faults {
		if late, limit, due, mark := f.lateness(s); late > limit {
			broken = append(broken, Violation{
				Judgement: LateRevert, Object: s.World + "/" + s.Object.Name,
				Expected: fmt.Sprintf("reverted at %s, or within %s in which the operator could act", clock(due), limit),
				Seen: fmt.Sprintf("%q seen until %s, %s of that beyond its end while the operator could act", mark,
					clock(f.Marks[mark].Last), late.Round(time.Second/10)),
			})
		}
	}
	return broken
}

// lateness is for how long the effect of a fault was seen beyond its end, while its operator could act, and the limit.
func (f *Facts) lateness(s Seen[*v1alpha1.RedisFault]) (late, limit time.Duration, due time.Time, mark string) {
	mark = markOf(s.World, s.Object)
	seen := f.Marks[mark]
	due, byAPI := f.due(s)
	limit = revertLimit
	if s.Object.Spec.Action.Type == v1alpha1.FaultPodTemplate {
		limit = rollLimit
	}
	if seen == nil || due.IsZero() || !seen.Last.After(due) {
		return 0, limit, due, mark
	}
	// The process that injected a change of Redis holds its end, without the API server and without the Lease.
	if s.Object.Spec.Action.Type == v1alpha1.FaultConfig && !byAPI && !f.processDisturbed(seen.First, seen.Last) {
		return seen.Last.Sub(due), limit, due, mark
	}
	return f.Able.Within(due, seen.Last, settling), limit, due, mark
}

// processDisturbed reports whether a manager was killed, stopped or slowed between two instants.
func (f *Facts) processDisturbed(from, to time.Time) bool {
	return slices.ContainsFunc(f.Events, func(e Done) bool {
		switch e.Kind {
		case ManagerKilled, ManagerPodDeleted, ManagerPaused, NodeSlowed, KubeletPaused:
			return !e.Began.IsZero() && e.Began.Before(to) && (e.Ended.IsZero() || e.Ended.Add(settling).After(from))
		}
		return false
	})
}

func unended(f *Facts) (broken []Violation) {
	add := func(world string, object metav1.Object, conditions []metav1.Condition) {
		what := Violation{
			Judgement: Unended,
			Object:    world + "/" + object.GetName(),
			Expected:  "Complete or Failed",
			Seen:      describe(conditions),
		}
		if object.GetDeletionTimestamp() != nil {
			what.Expected = "gone, as it was deleted"
			what.Seen = fmt.Sprintf("there since %s: %s", clock(object.GetDeletionTimestamp().Time), what.Seen)
		} else if ended(conditions) {
			return
		}
		broken = append(broken, what)
	}
	for _, s := range f.Faults {
		if !s.Gone {
			add(s.World, s.Object, s.Object.Status.Conditions)
		}
	}
	for _, s := range f.LoadTests {
		if !s.Gone {
			add(s.World, s.Object, s.Object.Status.Conditions)
		}
	}
	for _, s := range f.Experiments {
		if !s.Gone {
			add(s.World, s.Object, s.Object.Status.Conditions)
		}
	}
	return broken
}

// ended reports whether an object has completed or failed.
func ended(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete) ||
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed)
}

func describe(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	if c == nil {
		return "no status"
	}
	return fmt.Sprintf("Complete=%s %s since %s: %s", c.Status, c.Reason, clock(c.LastTransitionTime.Time), c.Message)
}

func clock(at time.Time) string {
	return at.UTC().Format("15:04:05.0")
}

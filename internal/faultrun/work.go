package faultrun

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// work is what this process has done to the targets of one record, and what of that the API server
// has not stored yet.
type work struct {
	known    Progress
	traits   contract.Traits
	deadline time.Time // of the fault
	endsAt   time.Time // when it is to be reverted at the latest; zero = it is not
	// pods whose target this process has changed since it was last stored
	changed map[string]bool
	// pods whose record the last call has changed: it must be stored before the next
	rewrote map[string]bool
	moved   map[string]time.Time // when the last step of the revert was seen, by pod
	born    time.Time
	loaded  time.Time // when the load test was last seen; until then born
	tried   bool      // every target was, to revert it
}

func newWork(f *v1alpha1.RedisFault, traits contract.Traits, now time.Time) work {
	w := work{
		known:    ProgressOf(&f.Status),
		traits:   traits,
		deadline: DeadlineOf(f),
		born:     now,
		loaded:   now,
		changed:  map[string]bool{},
		rewrote:  map[string]bool{},
		moved:    map[string]time.Time{},
	}
	w.setEnd()
	return w
}

// DeadlineOf is when a fault ends at the latest.
func DeadlineOf(f *v1alpha1.RedisFault) time.Time {
	return f.CreationTimestamp.Add(f.Spec.DeadlineAfter())
}

func (w *work) setEnd() {
	w.endsAt = w.known.endOf(w.traits, w.deadline)
}

// merge takes over what is stored.
func (w *work) merge(stored *v1alpha1.RedisFaultStatus) {
	w.known.merge(stored, w.changed)
}

// learn takes over what was done, except that a revert which has begun meanwhile has, and why.
func (w *work) learn(now Progress) {
	now.revertingSince = cmp.Or(now.revertingSince, w.known.revertingSince)
	now.breach = cmp.Or(now.breach, w.known.breach)
	w.known = now
}

// catchUp takes over what is stored, and forgets what of its own is. It reports whether the next
// attempt waited for that.
func (w *work) catchUp(status *v1alpha1.RedisFaultStatus) (waited bool) {
	w.merge(status)
	for i := range status.Targets {
		stored := &status.Targets[i]
		t := w.target(stored.Pod)
		if t == nil || !sameWhenStored(stored, t) {
			continue
		}
		waited = waited || w.changed[t.Pod] && w.rewrote[t.Pod]
		delete(w.changed, t.Pod)
	}
	return waited
}

// reverted takes over the result of a call of Revert. before is the record that it was called with,
// step what was in progress.
func (w *work) reverted(
	t *v1alpha1.FaultTarget, before *v1alpha1.RevertRecord, step string, err error, now time.Time,
) {
	if own := w.target(t.Pod); own != nil && IsOpen(own) {
		*own = *t
	}
	if err == nil && t.Progress != step {
		w.moved[t.Pod] = now
	}
	w.changed[t.Pod] = true
	w.rewrote[t.Pod] = t.RevertedAt == nil && !equality.Semantic.DeepEqual(before, t.Revert)
}

// isStored reports whether the API server has the target's record.
func (w *work) isStored(pod string) bool {
	return !w.rewrote[pod] || !w.changed[pod]
}

// target is that of a pod; nil if there is none.
func (w *work) target(pod string) *v1alpha1.FaultTarget {
	i := slices.IndexFunc(w.known.targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == pod })
	if i < 0 {
		return nil
	}
	return &w.known.targets[i]
}

package faultrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
)

// Progress is what was done to the targets of a fault: the part of its status that a process knows
// before the API server does.
type Progress struct {
	recorded       *metav1.MicroTime // status.startTime: it identifies the record
	targets        []v1alpha1.FaultTarget
	injectedAt     *metav1.MicroTime
	injectedOffset *v1alpha1.Duration
	revertingSince *metav1.MicroTime
	revertedAt     *metav1.MicroTime
	breach         *v1alpha1.Breach // why the revert began
}

// ProgressOf is the progress that a status has.
func ProgressOf(status *v1alpha1.RedisFaultStatus) Progress {
	return Progress{
		recorded:       status.StartTime,
		targets:        cloneTargets(status.Targets),
		injectedAt:     status.InjectedAt,
		injectedOffset: status.InjectedOffset,
		revertingSince: status.RevertingSince,
		revertedAt:     status.RevertedAt,
		breach:         status.Breach,
	}
}

// Into sets the progress in a status.
func (p *Progress) Into(status *v1alpha1.RedisFaultStatus) {
	status.Targets = cloneTargets(p.targets)
	status.InjectedAt = p.injectedAt
	status.InjectedOffset = p.injectedOffset
	status.RevertingSince = p.revertingSince
	status.RevertedAt = p.revertedAt
	status.Breach = p.breach
}

// merge takes over what is stored: every instant, as only one can be right, and the rest of the
// targets that this process has not changed since.
func (p *Progress) merge(stored *v1alpha1.RedisFaultStatus, changed map[string]bool) {
	for i := range p.targets {
		t := &p.targets[i]
		j := slices.IndexFunc(stored.Targets, func(o v1alpha1.FaultTarget) bool { return o.Pod == t.Pod })
		if j < 0 {
			continue
		}
		other, own := stored.Targets[j].DeepCopy(), *t
		if !changed[t.Pod] {
			*t = *other
		}
		t.InjectedAt = cmp.Or(other.InjectedAt, own.InjectedAt)
		t.ActiveAt = cmp.Or(other.ActiveAt, own.ActiveAt)
		t.RevertedAt = cmp.Or(other.RevertedAt, own.RevertedAt)
		t.RevertAbandoned = other.RevertAbandoned || own.RevertAbandoned
	}
	if stored.InjectedAt != nil {
		p.injectedAt, p.injectedOffset = stored.InjectedAt, stored.InjectedOffset
	}
	p.breach = cmp.Or(stored.Breach, p.breach)
	p.revertingSince = cmp.Or(stored.RevertingSince, p.revertingSince)
	p.revertedAt = cmp.Or(stored.RevertedAt, p.revertedAt)
}

func cloneTargets(targets []v1alpha1.FaultTarget) []v1alpha1.FaultTarget {
	all := make([]v1alpha1.FaultTarget, len(targets))
	for i := range targets {
		targets[i].DeepCopyInto(&all[i])
	}
	return all
}

// same reports whether a status is of the same record.
func (p *Progress) same(status *v1alpha1.RedisFaultStatus) bool {
	return p.recorded != nil && status.StartTime != nil && p.recorded.Equal(status.StartTime)
}

// sameWhenStored reports whether two targets are equal as the API server stores them: its instants
// have microseconds.
func sameWhenStored(a, b *v1alpha1.FaultTarget) bool {
	one, failed := json.Marshal(a)
	other, err := json.Marshal(b)
	return failed == nil && err == nil && bytes.Equal(one, other)
}

// Reverting reports whether the revert has begun.
func (p *Progress) Reverting() bool {
	return p.revertingSince != nil
}

// Reverted reports whether nothing is left to revert.
func (p *Progress) Reverted() bool {
	return p.revertedAt != nil
}

// IsOpen reports whether a target is neither reverted nor abandoned.
func IsOpen(t *v1alpha1.FaultTarget) bool {
	return t.RevertedAt == nil && !t.RevertAbandoned
}

func (p *Progress) anyOpen() bool {
	return slices.ContainsFunc(p.targets, func(t v1alpha1.FaultTarget) bool { return IsOpen(&t) })
}

// begin records that the revert has begun: nothing is injected after that. The reason why an
// injection is incomplete remains.
func (p *Progress) begin(now time.Time) {
	if p.revertingSince != nil {
		return
	}
	p.revertingSince = new(metav1.NewMicroTime(now))
	for i := range p.targets {
		t := &p.targets[i]
		if t.ActiveAt == nil && t.Progress != "" {
			t.LastError = Shorten("not complete: "+t.Progress, MaxError, len(p.targets))
		}
	}
}

// conclude records when nothing was left to revert.
func (p *Progress) conclude(now time.Time) {
	if p.revertedAt == nil && !p.anyOpen() {
		p.revertedAt = new(metav1.NewMicroTime(now))
	}
}

// tried reports whether an injection into a target was tried. It may be broken then: an error does
// not say that a call had no effect.
func tried(t *v1alpha1.FaultTarget) bool {
	return t.InjectedAt != nil || t.Attempts > 0
}

// Begun reports whether something may be broken or prepared.
func (p *Progress) Begun() bool {
	return p.injectedAt != nil ||
		slices.ContainsFunc(p.targets, func(t v1alpha1.FaultTarget) bool { return tried(&t) })
}

// endOf is when a fault is to be reverted at the latest; zero while nothing is injected, or if
// nothing of it stays. One that is not complete ends when the reconciler would stop trying.
func (p *Progress) endOf(traits contract.Traits, deadline time.Time) time.Time {
	if traits.Lasts == 0 || p.recorded == nil || !p.Begun() {
		return time.Time{}
	}
	end, failed, complete := p.recorded.Time, false, true
	for i := range p.targets {
		t := &p.targets[i]
		if t.InjectedAt != nil && t.ActiveAt != nil {
			if at := t.ActiveAt.Add(traits.Lasts); at.After(end) {
				end = at
			}
			continue
		}
		complete, failed = false, failed || t.LastError != ""
	}
	if !complete {
		end = p.recorded.Add(lifecycle.InjectionPatience(failed, traits.Takes))
	}
	if deadline.IsZero() || end.Before(deadline) {
		return end
	}
	return deadline
}

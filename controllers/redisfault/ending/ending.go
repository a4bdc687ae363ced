// Package ending ends faults whatever their reconciles wait for: it begins the revert of those that
// are deleted, aborted, stopped or overdue, also when an operator starts, and removes what lost
// faults have left.
package ending

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/reach"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/internal/fault/node"
	"github.com/redquake/redquake/internal/faultrun"
)

// Ender ends faults.
type Ender struct {
	Client    client.Client
	APIReader client.Reader // not cached
	Clock     clock.PassiveClock
	Term      *faultrun.Term
	Reach     *reach.Reach
	// its annotation stops all faults; "" = unknown, then none does
	OperatorNamespace string
	Namespaces        rules.Namespaces
	// Swept says that no node of a lost fault is left from before this process.
	Swept *atomic.Bool
}

// RestoreWithin is how long an operator that starts looks which faults an annotation stops, and
// waits for the first attempts to revert those that are over.
const RestoreWithin = 5 * time.Second

// EndGone ends what this process holds of objects that had the name of a fault and do not exist any
// more. A cache may be older than what is held: the API server is asked. seen is the object that
// the cache has; "" = none.
func (r *Ender) EndGone(ctx context.Context, key client.ObjectKey, seen types.UID) error {
	if !r.Term.HoldsOther(key, seen) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	f := &v1alpha1.RedisFault{}
	err := r.APIReader.Get(ctx, key, f)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the fault past the cache: %w", err)
	}
	r.Term.Gone(key, f.UID)
	return nil
}

// EndEarly begins the revert of a fault if it is due, and returns its reverter then.
func (r *Ender) EndEarly(
	ctx context.Context, f *v1alpha1.RedisFault,
) (*faultrun.Reverter, error) {
	s := r.scopeToEnd(f)
	if !s.Seen.Ending(s.Now) { // otherwise nothing has to be asked
		if err := r.ObserveStop(ctx, s); err != nil {
			return nil, err
		}
	}
	return r.endIfDue(ctx, s), nil
}

// scopeToEnd is what the object and this process know of a fault.
func (r *Ender) scopeToEnd(f *v1alpha1.RedisFault) *scope.Fault {
	s := &scope.Fault{
		Fault:  f,
		Before: f,
		Now:    r.Clock.Now(),
	}
	tried := s.FollowReverter(r.Term.Find(f.UID).ReverterOf(&f.Status))
	s.Seen = scope.SeenOf(f, tried, s.Now)
	scope.ObserveRecords(s)
	return s
}

// endIfDue begins the revert if it is due; nil if not.
func (r *Ender) endIfDue(ctx context.Context, s *scope.Fault) *faultrun.Reverter {
	if !s.Seen.Ending(s.Now) {
		return nil
	}
	v := r.Reach.ReverterOf(ctx, s.Fault)
	v.Ask()
	return v
}

// Restore begins the revert of every fault that is overdue, and arms the others.
func (r *Ender) Restore(ctx context.Context) {
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all); err != nil {
		log.FromContext(ctx).Error(err, "list the faults to revert those that are overdue")
		return
	}
	var due []*faultrun.Reverter
	var others []*v1alpha1.RedisFault
	for i := range all.Items {
		f := &all.Items[i]
		s := scope.SeenOf(f, false, r.Clock.Now())
		if s.Finished || !scope.IsRecorded(&f.Status) ||
			f.Status.RevertedAt != nil || !new(faultrun.ProgressOf(&f.Status)).Begun() {
			continue
		}
		v := r.Reach.ReverterOf(ctx, f)
		if r.endIfDue(ctx, r.scopeToEnd(f)) == nil && !v.Overdue() {
			others = append(others, f)
			continue
		}
		v.Ask()
		due = append(due, v)
	}
	waits, cancel := context.WithTimeout(ctx, RestoreWithin)
	defer cancel()
	for _, f := range others { // not earlier: the annotations of their namespaces may have to be read
		if v, err := r.EndEarly(waits, f); err == nil && v != nil {
			due = append(due, v)
		}
	}
	for _, v := range due {
		v.AwaitAttempt(waits)
	}
	r.sweepNodes(ctx)
}

// endVanished ends what this process holds of faults whose objects were removed while no manager of
// it ran: no cache shows that. It reports whether the API server has answered for all.
func (r *Ender) endVanished(ctx context.Context) bool {
	answered := true
	for _, key := range r.Term.Held() {
		one, cancel := context.WithTimeout(ctx, RestoreWithin/5)
		answered = r.EndGone(one, key, "") == nil && answered
		cancel()
	}
	return answered
}

// sweepAgain is when an operator looks again for nodes of lost faults after that has failed.
var sweepAgain = wait.Backoff{
	Duration: time.Second,
	Factor:   2,
	Cap:      time.Minute,
	Steps:    10,
}

// Sweep does what needs an API server that answers and must not delay Restore: it ends what is held
// of faults that vanished, releases the nodes of lost faults unless Restore has, and tries that
// until ctx ends.
func (r *Ender) Sweep(ctx context.Context) {
	vanished := false
	again := sweepAgain // it counts its steps
	_ = again.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if !vanished {
			vanished = r.endVanished(ctx)
		}
		if !r.Swept.Load() {
			r.sweepNodes(ctx)
		}
		return vanished && r.Swept.Load(), nil
	})
}

// sweepNodes releases the nodes of faults that do not exist any more, as after a forced removal of a
// finalizer.
func (r *Ender) sweepNodes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	found, err := node.Sweep(ctx, r.APIReader, r.Client, r.Reach.Operator.Power)
	for _, one := range found {
		log.FromContext(ctx).Info("Released a node from faults that do not exist any more", "node",
			one.Node, "faults", one.Faults)
	}
	if err != nil && !apierrors.IsForbidden(err) { // without rights on nodes there are no node faults
		log.FromContext(ctx).Error(err, "release nodes from faults that do not exist any more")
		return
	}
	r.Swept.Store(true)
}

package redisfault

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/node"
	"github.com/redquake/redquake/internal/faultrun"
)

// restoreWithin is how long an operator that starts looks which faults an annotation stops, and
// waits for the first attempts to revert those that are over.
const restoreWithin = 5 * time.Second

// Ending begins the revert of faults that end early: deleted, aborted, stopped, or past their
// deadline. It has workers of its own and queries nothing, so that no fault stays because the
// workers of the Reconciler wait for servers.
type Ending struct{ *Reconciler }

// Reconcile begins a revert that is due.
func (e Ending) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &v1alpha1.RedisFault{}
	err := e.Client.Get(ctx, request.NamespacedName, f)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, e.endGone(ctx, request.NamespacedName, "")
	} else if err != nil {
		return ctrl.Result{}, err
	}
	_, err = e.endEarly(ctx, f)
	return ctrl.Result{}, errors.Join(err, e.endGone(ctx, request.NamespacedName, f.UID))
}

// endGone ends what this process holds of objects that had the name of a fault and do not exist any
// more. A cache may be older than what is held: the API server is asked. seen is the object that
// the cache has; "" = none.
func (r *Reconciler) endGone(ctx context.Context, key client.ObjectKey, seen types.UID) error {
	if !r.Term.HoldsOther(key, seen) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	f := &v1alpha1.RedisFault{}
	if err := r.APIReader.Get(ctx, key, f); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the fault past the cache: %w", err)
	}
	r.Term.Gone(key, f.UID)
	return nil
}

// SetupWithManager registers the controller.
func (e Ending) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	build := ctrl.NewControllerManagedBy(mgr)
	if e.namespaces().Watched() {
		build.WatchesMetadata(&corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(e.RequestsForNamespace))
	}
	return build.
		For(&v1alpha1.RedisFault{}).
		Named("redisfault-ending").
		WithOptions(options).
		Complete(reconcile.Reconciler(e))
}

// endEarly begins the revert of a fault if it is due, and returns its reverter then.
func (r *Reconciler) endEarly(
	ctx context.Context, f *v1alpha1.RedisFault,
) (*faultrun.Reverter, error) {
	s := r.scopeToEnd(f)
	if !s.seen.Ending(s.now) { // otherwise nothing has to be asked
		if err := r.observeStop(ctx, s); err != nil {
			return nil, err
		}
	}
	return r.endIfDue(ctx, s), nil
}

// scopeToEnd is what the object and this process know of a fault.
func (r *Reconciler) scopeToEnd(f *v1alpha1.RedisFault) *scope {
	s := &scope{fault: f, before: f, now: r.Clock.Now()}
	tried := s.followReverter(r.Term.Find(f.UID).ReverterOf(&f.Status))
	s.seen = seenOf(f, tried, s.now)
	observeRecords(s)
	return s
}

// endIfDue begins the revert if it is due; nil if not.
func (r *Reconciler) endIfDue(ctx context.Context, s *scope) *faultrun.Reverter {
	if !s.seen.Ending(s.now) {
		return nil
	}
	v := r.reverterOf(ctx, s.fault)
	v.Ask()
	return v
}

// Restore begins the revert of every fault that is overdue, arms the others, and removes the taints
// of lost faults from nodes. An operator that starts does this first, once: until then its
// reconciles wait.
func (r *Reconciler) Restore(ctx context.Context) {
	r.restoring.Do(func() {
		r.restored = make(chan struct{})
		r.Term.Lead()
		go func() {
			defer close(r.restored)
			r.restore(ctx)
		}()
	})
	select {
	case <-r.restored:
	case <-ctx.Done():
	}
}

func (r *Reconciler) restore(ctx context.Context) {
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all); err != nil {
		log.FromContext(ctx).Error(err, "list the faults to revert those that are overdue")
		return
	}
	var due []*faultrun.Reverter
	var others []*v1alpha1.RedisFault
	for i := range all.Items {
		f := &all.Items[i]
		if s := seenOf(f, false, r.Clock.Now()); s.Finished || !isRecorded(&f.Status) ||
			f.Status.RevertedAt != nil || !new(faultrun.ProgressOf(&f.Status)).Begun() {
			continue
		}
		v := r.reverterOf(ctx, f)
		if r.endIfDue(ctx, r.scopeToEnd(f)) == nil && !v.Overdue() {
			others = append(others, f)
			continue
		}
		v.Ask()
		due = append(due, v)
	}
	waits, cancel := context.WithTimeout(ctx, restoreWithin)
	defer cancel()
	for _, f := range others { // not earlier: the annotations of their namespaces may have to be read
		if v, err := r.endEarly(waits, f); err == nil && v != nil {
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
func (r *Reconciler) endVanished(ctx context.Context) bool {
	answered := true
	for _, key := range r.Term.Held() {
		one, cancel := context.WithTimeout(ctx, restoreWithin/5)
		answered = r.endGone(one, key, "") == nil && answered
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
// of faults that vanished, removes the taints of lost faults from nodes unless Restore has, and
// tries that until ctx ends.
func (r *Reconciler) Sweep(ctx context.Context) {
	vanished := false
	again := sweepAgain // it counts its steps
	_ = again.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if !vanished {
			vanished = r.endVanished(ctx)
		}
		if !r.swept.Load() {
			r.sweepNodes(ctx)
		}
		return vanished && r.swept.Load(), nil
	})
}

// sweepNodes removes the taints of faults that do not exist any more, as after a forced removal of
// a finalizer.
func (r *Reconciler) sweepNodes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	found, err := node.Sweep(ctx, r.APIReader, r.Client)
	for _, one := range found {
		log.FromContext(ctx).Info("Removed the taint of a fault that does not exist any more", "node",
			one.Node)
	}
	if err != nil && !apierrors.IsForbidden(err) { // without rights on nodes there are no node faults
		log.FromContext(ctx).Error(err, "look for taints of faults that do not exist any more")
		return
	}
	r.swept.Store(true)
}

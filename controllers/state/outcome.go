package state

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/problem"
)

// Outcome is the result of a step.
type Outcome struct {
	Again bool // requeue at once
	// requeue after that time, whatever the decision was to wait for
	After time.Duration
	Stale bool // nothing was done: the copy in the cache is older than what is stored
	// SkipReport says that the status is not written: the object does not exist any more, or its
	// patch triggers the next reconcile.
	SkipReport bool
	Problem    *problem.Problem // shown in the conditions; the step is retried, unless it is lasting
	Ended      bool             // the object is finished: figures and conditions are final
	Failed     bool             // with Ended: it failed
	Err        error            // retry with back-off
}

// Conclude has an outcome reported, and returns the result of the reconcile, which is to be
// repeated at an instant; the zero time means that only a change does that.
func (o Outcome) Conclude(
	clock clock.PassiveClock, until time.Time, report func() error,
) (ctrl.Result, error) {
	if o.Stale {
		return Stale(), nil
	}
	if o.SkipReport {
		return ctrl.Result{}, o.Err
	}
	if err := report(); err != nil {
		return ResultForPatchError(err)
	}
	if o.After > 0 {
		until = clock.Now().Add(o.After)
	}
	return Requeue(o.Again, until, clock.Now()), o.Err
}

// Fresh reports whether an object is as it was read. If not, or if that is not known, the outcome
// is that of the step.
func Fresh(
	ctx context.Context, reader client.Reader, kind string, read client.Object,
) (o Outcome, fresh bool) {
	old, err := IsStale(ctx, reader, kind, read)
	return Outcome{Stale: old && err == nil, Err: client.IgnoreNotFound(err)}, !old && err == nil
}

// Note notes on an object that it has begun to run, before anything of it is created.
func Note(ctx context.Context, c client.Client, read client.Object) Outcome {
	err := StoreNote(ctx, c, read)
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return Outcome{SkipReport: true} // the patch triggers the next reconcile
	case apierrors.IsConflict(err):
		return Outcome{Stale: true}
	}
	return Outcome{Err: err}
}

// Expire deletes an object whose TTL has passed; what says what it is, in errors.
func Expire(ctx context.Context, c client.Client, object client.Object, what string) Outcome {
	uid := object.GetUID()
	err := c.Delete(ctx, object, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return Outcome{SkipReport: true, Err: fmt.Errorf("delete the expired %s: %w", what, err)}
	}
	return Outcome{SkipReport: true}
}

// PatchStatus writes the status of an object that was read as before. It changes neither.
func PatchStatus(ctx context.Context, c client.Client, object, before client.Object) error {
	changed := object.DeepCopyObject().(client.Object)
	err := c.Status().Patch(ctx, changed, OptimisticPatch(before))
	if err != nil {
		return fmt.Errorf("patch the status: %w", err)
	}
	return nil
}

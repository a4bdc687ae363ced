// Package state reads and writes the state of the objects that the controllers reconcile:
// optimistic patches, stale copies in the cache, the conditions that all kinds have, and values in
// the form in which a status holds them.
package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// ErrStale means that the cache does not contain a write yet that this process may have made.
var ErrStale = errors.New("the copy in the cache is stale")

// OptimisticPatch returns a patch that the API server rejects if the object has changed since it
// was read. The cache lags behind our own writes: otherwise a second reconcile could overwrite the
// record of an injected fault by a new one, or store another start instant.
func OptimisticPatch(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// IsStale reports whether an object has changed since it was read. Steps that cannot be reverted
// are not performed on a stale copy: they may have been performed already.
func IsStale(
	ctx context.Context, reader client.Reader, kind string, read client.Object,
) (bool, error) {
	current := &metav1.PartialObjectMetadata{}
	current.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	err := reader.Get(ctx, client.ObjectKeyFromObject(read), current)
	if err != nil {
		return true, fmt.Errorf("read the current resource version of %s %s: %w", kind, read.GetName(),
			err)
	}
	return current.ResourceVersion != read.GetResourceVersion(), nil
}

// Stale is the result of a reconcile on a copy that is older than what is stored. The reconcile is
// repeated when the cache receives what is stored, else after a back-off: a cache that does not
// follow the API server must not make a loop of it.
func Stale() ctrl.Result {
	// An error would have the back-off, too, but also a line in the log.
	return ctrl.Result{Requeue: true} //nolint:staticcheck // deprecated for whoever polls
}

// ResultForPatchError maps the error of a status patch to the result of the reconcile: a decision
// that was made on a stale copy is made again.
func ResultForPatchError(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return Stale(), nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// Requeue returns the result that requeues an object at an instant, or at once if again is set. The
// zero time means that only a change requeues it.
func Requeue(again bool, at, now time.Time) ctrl.Result {
	if again {
		return ctrl.Result{RequeueAfter: time.Millisecond}
	}
	if at.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(at.Sub(now), time.Millisecond)}
}

package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// staleRetry is how soon an object is looked at again whose copy in the cache was old.
const staleRetry = 10 * time.Millisecond

// onto is a patch that the API server refuses if the object has changed since it was read. The cache lags behind our own writes: without
// this, a second reconcile would record a fault's targets anew over the record of what is already injected, or set another start instant.
func onto(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
}

// errOld says that the cache does not hold yet what this process may have written.
var errOld = errors.New("the copy in the cache is old")

// isOld says whether an object of ours has changed since it was read. What cannot be taken back is not done on an old copy: it may have been done already.
func isOld(ctx context.Context, live client.Reader, kind string, read client.Object) (bool, error) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	err := live.Get(ctx, client.ObjectKeyFromObject(read), now)
	return now.ResourceVersion != read.GetResourceVersion(), err
}

// refused turns the error of a status write into a reconcile's result: what was decided on an old copy is decided again.
func refused(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

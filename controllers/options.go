package controllers

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// options of both controllers: several objects at once, as one may wait seconds for load pods to answer, and a back-off that is short, as
// what errs here is mostly a conflict or a pod that is just starting.
func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: 8,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 10*time.Second),
	}
}

package controllers

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// patientFor is how long an informer that may not list its objects lets the manager wait.
const patientFor = 10 * time.Second

// withoutRights makes the informer of one namespace. Where the operator may not list the objects,
// as in a namespace that is deleted, or to which no Role has been bound yet, it starts without any:
// otherwise the manager would not start, for the sake of all other namespaces either. It goes on
// trying. Once it has listed, what it holds is only replaced by what the API server has.
func withoutRights(
	from toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	l := &lenient{of: toolscache.ToListerWatcherWithContext(from), clock: clock.RealClock{}}
	return toolscache.NewSharedIndexInformer(
		&toolscache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}, example,
		resync, indexers)
}

// lenient lists nothing if it has been refused for a while, and never listed anything.
type lenient struct {
	of    toolscache.ListerWatcherWithContext
	clock clock.PassiveClock

	mu      sync.Mutex
	listed  bool
	refused time.Time // first
}

func (l *lenient) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := l.of.ListWithContext(ctx, options)
	if l.mayBeEmpty(err) {
		return &metav1.List{}, nil
	}
	return list, err
}

func (l *lenient) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := l.of.WatchWithContext(ctx, options)
	l.mayBeEmpty(err)
	return events, err
}

// mayBeEmpty notes the result of a request, and reports whether it can be taken for an empty list.
func (l *lenient) mayBeEmpty(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.listed = true
	case apierrors.IsForbidden(err) && l.refused.IsZero():
		l.refused = l.clock.Now()
	}
	return apierrors.IsForbidden(err) && !l.listed && l.clock.Since(l.refused) >= patientFor
}

package controllers

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// watchedQueue is the queue of a controller that knows since when each request is due.
type watchedQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	controller string
	limiter    workqueue.TypedRateLimiter[reconcile.Request]
	now        func() time.Time

	mu      sync.Mutex
	due     map[reconcile.Request]time.Time // of those that wait
	started map[reconcile.Request]time.Time // of those that are worked on
}

func newWatchedQueue(
	controller string, limiter workqueue.TypedRateLimiter[reconcile.Request], now func() time.Time,
) *watchedQueue {
	return &watchedQueue{
		PriorityQueue: priorityqueue.New(controller, func(o *priorityqueue.Opts[reconcile.Request]) {
			o.RateLimiter = limiter
		}),
		controller: controller,
		limiter:    limiter,
		now:        now,
		due:        map[reconcile.Request]time.Time{},
		started:    map[reconcile.Request]time.Time{},
	}
}

// AddWithOpts implements priorityqueue.PriorityQueue. The delay of a request that failed is asked
// for here, so that it is known.
func (q *watchedQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	limited := o.RateLimited
	o.RateLimited = false
	for _, request := range requests {
		each := o
		if limited {
			delay := q.limiter.When(request)
			if each.After == 0 || delay < each.After {
				each.After = delay
			}
		}
		q.note(request, each.After)
		q.PriorityQueue.AddWithOpts(each, request)
	}
}

// note sets when a waiting request is due; one that is due earlier stays so.
func (q *watchedQueue) note(request reconcile.Request, after time.Duration) {
	at := q.now().Add(after)
	q.mu.Lock()
	defer q.mu.Unlock()
	if due, waits := q.due[request]; !waits || at.Before(due) {
		q.due[request] = at
	}
}

// Add implements workqueue.TypedInterface.
func (q *watchedQueue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *watchedQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *watchedQueue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// Get implements workqueue.TypedInterface.
func (q *watchedQueue) Get() (reconcile.Request, bool) {
	request, _, shutdown := q.GetWithPriority()
	return request, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *watchedQueue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	request, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.mu.Lock()
		delete(q.due, request)
		q.started[request] = q.now()
		q.mu.Unlock()
	}
	return request, priority, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *watchedQueue) Done(request reconcile.Request) {
	q.mu.Lock()
	delete(q.started, request)
	q.mu.Unlock()
	q.PriorityQueue.Done(request)
}

// oldest returns the request that has waited or been worked on for longest, and for how long.
func (q *watchedQueue) oldest() (request reconcile.Request, age time.Duration) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, all := range []map[reconcile.Request]time.Time{q.due, q.started} {
		for one, since := range all {
			if waited := now.Sub(since); waited > age {
				request, age = one, waited
			}
		}
	}
	return request, age
}

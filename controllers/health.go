package controllers

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// StalledUnready is for how long the manager that leads may not reconcile until it is not ready.
	StalledUnready = time.Minute
	// stalledDead is for how long it may not until the kubelet is to restart it. A leader without an
	// API server does not live as long: it loses its Lease.
	stalledDead = 2 * time.Minute
	// LeaseReadEvery is the time between two looks at the own Lease, and how long one may take.
	LeaseReadEvery = 5 * time.Second
)

// health measures for how long a manager that leads has not reconciled. Such a manager renews its
// Lease all the same: its controllers may hang, or see copies of the past. One that does not lead
// has nothing to reconcile, and is well.
type health struct {
	now   func() time.Time
	lease *client.ObjectKey // nil = there is none

	mu     sync.Mutex
	queues []*watchedQueue
	leads  bool
	seen   string    // resource version of the Lease in the cache
	seenAt time.Time // when it was first seen
}

func newHealth(now func() time.Time) *health {
	return &health{now: now}
}

// watching returns the options of a controller whose queue is watched.
func (h *health) watching(o controller.Options) controller.Options {
	o.NewQueue = h.newQueue
	return o
}

func (h *health) newQueue(
	controller string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := newWatchedQueue(controller, limiter, h.now)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queues = append(h.queues, q)
	return q
}

// lead notes that the manager leads, until ctx ends, and follows the own Lease in the cache, from
// which the reconcilers read. The leader renews it every few seconds: a copy that does not change
// is one of the past.
func (h *health) lead(ctx context.Context, cached client.Reader) {
	h.note(true, "")
	defer h.note(false, "")
	if h.lease == nil {
		<-ctx.Done()
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, LeaseReadEvery)
		defer cancel()
		lease := &coordinationv1.Lease{}
		if err := cached.Get(ctx, *h.lease, lease); err == nil {
			h.note(true, lease.ResourceVersion)
		}
	}, LeaseReadEvery)
}

func (h *health) note(leads bool, seen string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if leads != h.leads || seen != h.seen {
		h.seenAt = h.now()
	}
	h.leads, h.seen = leads, seen
}

// stalled returns for how long the manager has not reconciled although it leads, and why: the age
// of the oldest request that waits or is worked on, or of what the cache has of the own Lease.
func (h *health) stalled() (time.Duration, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leads {
		return 0, ""
	}
	var longest time.Duration
	var why string
	for _, q := range h.queues {
		if request, age := q.oldest(); age > longest {
			longest = age
			why = fmt.Sprintf("controller %s has not completed %s", q.controller, request)
		}
	}
	age := h.now().Sub(h.seenAt)
	if h.lease != nil && age > longest {
		longest = age
		why = fmt.Sprintf("the cache does not follow the API server: it has an old copy of the Lease %s",
			h.lease)
	}
	return longest, why
}

// within is a probe that fails when the manager has stalled for longer than a limit.
func (h *health) within(limit time.Duration) healthz.Checker {
	return func(*http.Request) error {
		if age, why := h.stalled(); age > limit {
			return fmt.Errorf("the manager leads but has not reconciled for %s: %s", age.Round(time.Second),
				why)
		}
		return nil
	}
}

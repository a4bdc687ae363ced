package controllers

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

// The age of the oldest request counts from when it is due, and goes on while it is worked on.
func TestOldestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(time.Now)
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second,
			time.Hour)
		q := h.newQueue("redisfault", limiter).(*watchedQueue)
		defer q.ShutDown()
		ages := func(want time.Duration, name string) {
			t.Helper()
			synctest.Wait()
			if request, age := q.oldest(); age != want || age > 0 && request.Name != name {
				t.Errorf("the oldest is %s, %s old, want %s, %s", request.Name, age, name, want)
			}
		}
		ages(0, "")
		q.AddAfter(requestFor("later"), 10*time.Second)
		time.Sleep(8 * time.Second)
		ages(0, "")
		q.Add(requestFor("now"))
		time.Sleep(3 * time.Second)
		ages(3*time.Second, "now")
		got, _ := q.Get()
		if got != requestFor("now") {
			t.Fatalf("got %s", got)
		}
		ages(time.Second, "later") // due since 1 s; the other was begun just now
		time.Sleep(time.Second)
		ages(2*time.Second, "later")
		if got, _, _ := q.GetWithPriority(); got != requestFor("later") {
			t.Fatalf("got %s", got)
		}
		time.Sleep(5 * time.Second)
		ages(6*time.Second, "now") // since it was begun
		q.Done(requestFor("now"))
		q.Done(requestFor("later"))
		ages(0, "")
		for range 3 { // the back-off is asked for once for each failure: 1 s, 2 s, 4 s
			q.AddRateLimited(requestFor("fails"))
		}
		if n := q.NumRequeues(requestFor("fails")); n != 3 {
			t.Errorf("%d failures are counted, want 3", n)
		}
		time.Sleep(1500 * time.Millisecond)
		ages(500*time.Millisecond, "fails")
		q.AddWithOpts(priorityqueue.AddOpts{}, requestFor("fails"))
		ages(500*time.Millisecond, "fails")
		if got, _ := q.Get(); got != requestFor("fails") {
			t.Fatalf("got %s", got)
		}
		q.Done(requestFor("fails"))
		ages(0, "")
	})
}

// A leader whose cache has an old copy of its own Lease is not ready after a minute, and dead after
// two. So is one whose controller does not come to an end.
func TestHealth(t *testing.T) {
	for name, stalls := range map[string]struct {
		cache, queue bool
		says         string
	}{
		"well": {},
		"old cache": {
			cache: true,
			says:  "it has an old copy of the Lease redquake-system/redquake",
		},
		"hung controller": {
			queue: true,
			says:  "controller redisloadtest has not completed shop/checkout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lease := &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: "redquake-system", Name: "redquake"},
				}
				stored := fake.NewClientBuilder().WithScheme(NewScheme()).WithObjects(lease).Build()
				var old atomic.Bool
				cached := interceptor.NewClient(stored, interceptor.Funcs{
					Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
						o ...client.GetOption,
					) error {
						if old.Load() {
							into.SetResourceVersion("1")
							return nil
						}
						return c.Get(ctx, key, into, o...)
					},
				})
				h := newHealth(time.Now)
				h.lease = new(client.ObjectKeyFromObject(lease))
				q := h.newQueue("redisloadtest", ControllerOptions().RateLimiter)
				defer q.ShutDown()
				ready, alive := h.within(StalledUnready), h.within(stalledDead)
				fails := func(unready, dead bool) {
					t.Helper()
					r, a := ready(nil), alive(nil)
					if (r != nil) != unready || (a != nil) != dead ||
						unready && !strings.Contains(r.Error(), stalls.says) {
						t.Errorf("ready: %v, alive: %v", r, a)
					}
				}
				time.Sleep(time.Hour)
				fails(false, false) // it does not lead

				ctx, end := context.WithCancel(t.Context())
				var leading, renewing atomic.Bool
				leading.Store(true)
				go func() {
					defer leading.Store(false)
					h.lead(ctx, cached)
				}()
				renewing.Store(true)
				go func() {
					for ; renewing.Load(); time.Sleep(2 * time.Second) {
						if err := stored.Update(ctx, lease); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
				}()
				time.Sleep(3 * time.Minute)
				fails(false, false)

				bad := stalls.cache || stalls.queue
				old.Store(stalls.cache)
				if stalls.queue {
					q.Add(requestFor("checkout"))
				}
				time.Sleep(50 * time.Second)
				fails(false, false)
				time.Sleep(20 * time.Second)
				fails(bad, false)
				time.Sleep(time.Minute)
				fails(bad, bad)
				end()
				synctest.Wait()
				fails(false, false)
				renewing.Store(false)
				time.Sleep(3 * time.Second)
				if leading.Load() {
					t.Error("it goes on after the end of the leadership")
				}
			})
		})
	}
}

package sim

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/internal/testing/apitest"
)

// ErrDead is what a process that has crashed gets from the API server.
var ErrDead = errors.New("this operator process is dead")

// Write is one write of an operator to the API server.
type Write struct {
	Verb   string // create update patch delete patch-status
	Object client.Object
	At     time.Time
}

// Spy is called for every write of an operator: Before may refuse it, After gets the result.
type Spy struct {
	Before func(Write) error
	After  func(Write)
}

// Life is whether a process still reaches the API server.
type Life struct {
	dead atomic.Bool
	once sync.Once
	died chan struct{}

	mu  sync.Mutex
	cut chan struct{} // closed when the API server answers again; nil = it answers
}

// NewLife is that of a process which has just started.
func NewLife() *Life {
	return &Life{died: make(chan struct{})}
}

// Crash ends the process's way to the world at once.
func (l *Life) Crash() {
	l.once.Do(func() {
		l.dead.Store(true)
		close(l.died)
	})
}

// Died is closed by Crash.
func (l *Life) Died() <-chan struct{} {
	return l.died
}

// Cut stops the API server for this process: its writes and live reads wait, and its caches do not change. The returned
// function ends that.
func (l *Life) Cut() (restore func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cut := make(chan struct{})
	l.cut = cut
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cut = nil
		close(cut)
	})
}

// reach waits while the API server is stopped, as long as the caller does.
func (l *Life) reach(ctx context.Context) error {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut == nil {
		return nil
	}
	select {
	case <-cut:
		return nil
	case <-l.died:
		return ErrDead
	case <-ctx.Done():
		return ctx.Err()
	}
}

// InterceptLive is Intercept for a reader without a cache. It lists page by page.
func (l *Life) InterceptLive() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption,
		) error {
			if err := l.reach(ctx); err != nil || l.Dead() {
				return cmp.Or(err, ErrDead)
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := l.reach(ctx); err != nil || l.Dead() {
				return cmp.Or(err, ErrDead)
			}
			return apitest.ListPage(ctx, c, list, options...)
		},
	}
}

// Intercept calls a spy for the writes of a process, and refuses all calls once it has crashed. Secrets are read live.
func (l *Life) Intercept(s Spy) interceptor.Funcs {
	do := func(ctx context.Context, verb string, object client.Object, act func() error) error {
		if err := l.reach(ctx); err != nil || l.Dead() {
			return cmp.Or(err, ErrDead)
		}
		w := Write{verb, object, time.Now()}
		if s.Before != nil {
			if err := s.Before(w); err != nil {
				return err
			}
		}
		err := act()
		if err == nil && s.After != nil {
			s.After(w)
		}
		if l.Dead() {
			return ErrDead
		}
		return err
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption,
		) error {
			if _, live := object.(*corev1.Secret); live {
				if err := l.reach(ctx); err != nil {
					return err
				}
			}
			if l.Dead() {
				return ErrDead
			}
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return do(ctx, "create", object, func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return do(ctx, "update", object, func() error { return c.Update(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return do(ctx, "delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption,
		) error {
			return do(ctx, "patch", object, func() error { return c.Patch(ctx, object, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			return do(ctx, "patch-"+sub, object, func() error {
				return c.SubResource(sub).Patch(ctx, object, patch,
					options...)
			})
		},
	}
}

// Dead reports whether it has crashed.
func (l *Life) Dead() bool {
	return l.dead.Load()
}

// Controller is a reconciler with the watches that trigger it.
type Controller struct {
	Reconciler reconcile.Reconciler
	Watches    []Source
	Events     <-chan event.GenericEvent // each triggers a reconcile of its object; nil = there are none
	Limiter    workqueue.TypedRateLimiter[reconcile.Request]
	Workers    int
}

// Source maps the objects of a kind to requests.
type Source struct {
	Kind client.ObjectList
	Map  func(context.Context, client.Object) []reconcile.Request
}

// Run makes controllers reconcile the objects of a namespace, as a manager does: existing objects, changed ones, and
// each again when the controller requested it. stop ends it.
func Run(t testing.TB, c client.WithWatch, namespace string, controllers ...Controller) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	for i := range controllers {
		controllers[i].run(ctx, t, c, namespace, &ended)
	}
	return func() {
		cancel()
		ended.Wait()
	}
}

func (k *Controller) run(
	ctx context.Context, t testing.TB, c client.WithWatch, namespace string, ended *sync.WaitGroup,
) {
	queue := workqueue.NewTypedRateLimitingQueue(k.Limiter)
	for _, source := range k.Watches {
		enqueue := func(o client.Object) {
			for _, request := range source.Map(ctx, o) {
				queue.Add(request)
			}
		}
		in := namespace
		_, clusterWide := source.Kind.(*corev1.NamespaceList)
		if clusterWide {
			in = ""
		}
		w, err := c.Watch(ctx, source.Kind, client.InNamespace(in))
		if err != nil {
			t.Fatal(err)
		}
		there := source.Kind.DeepCopyObject().(client.ObjectList)
		err = c.List(ctx, there, client.InNamespace(in))
		if err != nil {
			t.Fatal(err)
		}
		ended.Go(func() {
			defer w.Stop()
			_ = meta.EachListItem(there, func(o runtime.Object) error { enqueue(o.(client.Object)); return nil })
			follow(ctx, w.ResultChan(), enqueue)
		})
	}
	ended.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-k.Events:
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
			}
		}
	})
	for range k.Workers {
		ended.Go(func() { k.work(ctx, t, queue) })
	}
	ended.Go(func() {
		<-ctx.Done()
		queue.ShutDown()
	})
}

func (k *Controller) work(
	ctx context.Context, t testing.TB, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) {
	for {
		request, over := queue.Get()
		if over {
			return
		}
		result, err := k.reconcile(ctx, t, request)
		switch {
		case ctx.Err() != nil:
		case err != nil || result.Requeue: //nolint:staticcheck // see state.Stale
			queue.AddRateLimited(request)
		case result.RequeueAfter > 0:
			queue.Forget(request)
			queue.AddAfter(request, result.RequeueAfter)
		default:
			queue.Forget(request)
		}
		queue.Done(request)
	}
}

func (k *Controller) reconcile(
	ctx context.Context, t testing.TB, request reconcile.Request,
) (result reconcile.Result, err error) {
	defer func() {
		if what := recover(); what != nil {
			t.Errorf("reconcile %s: panic: %v\n%s", request, what, debug.Stack())
		}
	}()
	return k.Reconciler.Reconcile(ctx, request)
}

// follow calls seen with every object of a watch, until the watch or ctx ends.
func follow(ctx context.Context, events <-chan watch.Event, seen func(client.Object)) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-events:
			if !open {
				return
			}
			if o, ok := e.Object.(client.Object); ok {
				seen(o)
			}
		}
	}
}

package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Change is what a watch shows.
type Change struct {
	Resource schema.GroupVersionResource
	// nil = Trouble, Listed, or, without these, the API server answers again
	Object  *unstructured.Unstructured
	Deleted bool
	Listed  bool  // all objects that were there at first have been sent
	Trouble error // the API server does not answer, or refuses; the watch goes on by itself
	Lasting bool  // of Trouble: it will not end by itself
}

// Follow sends the objects of a resource in a namespace, with each of their changes, until ctx
// ends. name restricts it to one object; "" = all of them. An informer does so: it lists again
// after an interruption or where a version has expired, and backs off while the API server does not
// answer.
func (c *Client) Follow(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string,
	to chan<- Change,
) error {
	on := c.scoped(resource, namespace)
	only := func(options metav1.ListOptions) metav1.ListOptions {
		if name != "" {
			options.FieldSelector = "metadata.name=" + name
		}
		return options
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context,
			options metav1.ListOptions,
		) (runtime.Object, error) {
			return on.List(ctx, only(options))
		},
		WatchFuncWithContext: func(ctx context.Context,
			options metav1.ListOptions,
		) (watch.Interface, error) {
			return on.Watch(ctx, only(options))
		},
	}
	send := func(change Change) {
		change.Resource = resource
		select {
		case to <- change:
		case <-ctx.Done():
		}
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(source,
		c.dynamic), &unstructured.Unstructured{}, 0, nil)
	err := informer.SetWatchErrorHandlerWithContext(
		func(_ context.Context, _ *cache.Reflector, err error) {
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return // it lists again
			}
			send(Change{
				Trouble: Explain(err, "watch "+resource.Resource),
				Lasting: apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err),
			})
		})
	if err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { send(Change{Object: o.(*unstructured.Unstructured)}) },
		UpdateFunc: func(_, o any) { send(Change{Object: o.(*unstructured.Unstructured)}) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if u, ok := o.(*unstructured.Unstructured); ok {
				send(Change{Object: u, Deleted: true})
			}
		},
	})
	if err != nil {
		return err
	}
	leave := c.line.observe(func(err error) { send(Change{Trouble: err}) })
	context.AfterFunc(ctx, leave)
	go informer.RunWithContext(ctx)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
			send(Change{Listed: true})
		}
	}()
	return nil
}

// Package podwatch watches the pods of one target.
package podwatch

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Watch holds the pods of one target, as a watch of them alone shows them: a cache of all pods
// would need gigabytes in a large cluster.
// A nil Watch has none.
type Watch struct {
	ctx      context.Context
	informer cache.SharedIndexInformer
}

// Begin follows the pods of a namespace that a selector selects until ctx is done. After the first
// list it calls changed after every change but those of load pods.
func Begin(
	ctx context.Context, live client.WithWatch, namespace string, selector labels.Selector,
	changed func(),
) *Watch {
	selected := func(raw *metav1.ListOptions) []client.ListOption {
		return []client.ListOption{
			client.InNamespace(namespace),
			client.MatchingLabelsSelector{Selector: selector},
			&client.ListOptions{
				Raw:      raw,
				Limit:    raw.Limit,
				Continue: raw.Continue,
			},
		}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context,
			options metav1.ListOptions,
		) (runtime.Object, error) {
			page := &corev1.PodList{}
			return page, live.List(ctx, page, selected(&options)...)
		},
		WatchFuncWithContext: func(ctx context.Context,
			options metav1.ListOptions,
		) (watch.Interface, error) {
			return live.Watch(ctx, &corev1.PodList{}, selected(&options)...)
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(source, listFirst{}), &corev1.Pod{},
		cache.SharedIndexInformerOptions{})
	utilruntime.Must(informer.SetTransform(stripPod)) // these fail only once the informer runs
	utilruntime.Must(informer.SetWatchErrorHandlerWithContext(
		func(ctx context.Context, _ *cache.Reflector, err error) {
			log.FromContext(ctx).V(1).Info("Retrying to watch the pods of a target", "namespace", namespace,
				"selector", selector.String(), "cause", err.Error())
		}))
	see := func(object any) {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Labels[v1alpha1.LabelLoadTest] == "" {
			changed()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			if !first {
				see(object)
			}
		},
		UpdateFunc: func(_, object any) { see(object) },
		DeleteFunc: see,
	})
	utilruntime.Must(err)
	go informer.RunWithContext(ctx)
	return &Watch{ctx: ctx, informer: informer}
}

// listFirst makes an informer list before it watches: the pods of one target are few.
type listFirst struct{}

func (listFirst) IsWatchListSemanticsUnSupported() bool {
	return true
}

// stripPod drops what only the API server needs.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	stripped := *pod
	stripped.ManagedFields = nil
	return &stripped, nil
}

// Synced waits for the first list, or the end of ctx.
func (w *Watch) Synced(ctx context.Context) {
	select {
	case <-w.informer.HasSyncedChecker().Done():
	case <-ctx.Done():
	}
}

// Pods returns the pods by name, in whatever state; false before the first list and after the end
// of the watch. They must not be changed.
func (w *Watch) Pods() ([]corev1.Pod, bool) {
	if w == nil || w.ctx.Err() != nil || !w.informer.HasSynced() {
		return nil, false
	}
	var pods []corev1.Pod
	for _, object := range w.informer.GetStore().List() {
		if pod, ok := object.(*corev1.Pod); ok {
			pods = append(pods, *pod)
		}
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, true
}

package fault

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target"
)

// podWatch follows the pods of one fault's target.
type podWatch struct {
	*target.PodWatch
	of     client.ObjectKey
	cancel context.CancelFunc
}

// watchPods follows the pods of the fault's target from the selection of the targets until the fault settles, in any process that reconciles it: they
// are part of its timeline, and a change of one is a reason to reconcile it. Without pods that can be determined there is nothing to follow.
func (r *Reconciler) watchPods(ctx context.Context, s *scope) {
	id := s.fault.UID
	if _, watched := r.podWatches.Load(id); watched || s.target == nil {
		return
	}
	selector, err := s.deps.Selector(ctx)
	if err != nil { // the Service was deleted, or access was revoked: the state of the pods is unknown
		return
	}
	key := client.ObjectKeyFromObject(s.fault)
	following, cancel := context.WithCancel(context.Background()) // it outlives this reconcile
	w := &podWatch{PodWatch: target.WatchPods(following, r.APIReader, s.fault.Namespace, selector, func() { r.Reverters.notify(key) }), of: key, cancel: cancel}
	if _, raced := r.podWatches.LoadOrStore(id, w); raced {
		cancel()
		return
	}
	if r.closed.Load() { // the manager stops during this reconcile
		r.stopPodWatch(id)
		return
	}
	waits, stop := context.WithTimeout(ctx, target.AskTimeout)
	defer stop()
	w.Synced(waits)
}

// watchOf is the watch of the pods of a fault; nil = there is none.
func (r *Reconciler) watchOf(id types.UID) *target.PodWatch {
	if w, watched := r.podWatches.Load(id); watched {
		return w.(*podWatch).PodWatch
	}
	return nil
}

// watchedIn are the pods of a namespace that are watched for any fault.
func (r *Reconciler) watchedIn(namespace string) []corev1.Pod {
	var all []corev1.Pod
	r.podWatches.Range(func(_, w any) bool {
		if w := w.(*podWatch); w.of.Namespace == namespace {
			pods, _ := w.Pods()
			all = append(all, pods...)
		}
		return true
	})
	return all
}

func (r *Reconciler) stopPodWatch(id types.UID) {
	if w, watched := r.podWatches.LoadAndDelete(id); watched {
		w.(*podWatch).cancel()
	}
}

// forget ends what observes a fault that does not exist any more, as after a forced removal of its finalizer.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.podWatches.Range(func(id, w any) bool {
		if w.(*podWatch).of == key {
			r.stopWitness(id.(types.UID))
		}
		return true
	})
}

// needsPods reports whether the pods of the fault's target are part of its timeline.
func needsPods(f *v1alpha1.RedisFault) bool {
	return f.Status.StartTime != nil && f.Status.SettledTime == nil && !f.Spec.DryRun
}

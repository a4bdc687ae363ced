// Package sim is a Kubernetes cluster in memory, for tests in virtual time (testing/synctest): an API server, a Job
// controller with a kubelet that runs the real load agent, Redis as clients and faults see it, and operator processes
// that die at any of their writes. The stand-ins for controllers and kubelets work on a real API server, too.
package sim

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
)

// NewAPI is an API server: controller-runtime's fake client, and what a real one adds. It sets UID, creation time,
// generation and the defaults of the CRDs, checks a deletion's preconditions, and keeps the pods of a node until their
// kubelet deletes them. It validates nothing and collects no garbage;
// Kubelet does the latter.
func NewAPI(scheme *runtime.Scheme) client.WithWatch {
	stored := &store{
		scheme:        scheme,
		ObjectTracker: clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()),
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(stored).WithGlobalResourceVersionCounter().
		WithStatusSubresource(&v1alpha1.RedisLoadTest{}, &v1alpha1.RedisFault{}, &v1alpha1.RedisExperiment{},
			&v1alpha1.RedisExperimentSchedule{}).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
			return []string{
				string(o.(*corev1.Event).InvolvedObject.UID),
			}
		}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&v1alpha1.RedisFault{}, "status.holding", func(o client.Object) []string {
			holding := o.(*v1alpha1.RedisFault).Status.Holding
			return []string{strconv.FormatBool(holding != nil && *holding)}
		}).
		Build()
	return interceptor.NewClient(api, interceptor.Funcs{
		Get:              stored.getObject,
		List:             stored.listObjects,
		Create:           createObject,
		Delete:           deleteObject,
		Watch:            watchSelected,
		SubResourcePatch: stored.patchStatus,
	})
}

// createObject stores an object, except a review, which is answered: everybody may do everything.
func createObject(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	review, ok := object.(*authorizationv1.SelfSubjectAccessReview)
	if ok {
		review.Status.Allowed = true
		return nil
	}
	return c.Create(ctx, object, options...)
}

// watchSelected watches by labels as the API server does: an object that does not have them any more is deleted for the
// watcher.
func watchSelected(
	ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
) (watch.Interface, error) {
	var given client.ListOptions
	given.ApplyOptions(options)
	all, err := c.Watch(ctx, list, options...)
	if err != nil || given.LabelSelector == nil {
		return all, err
	}
	events := make(chan watch.Event)
	selected := watch.NewProxyWatcher(events)
	go func() {
		defer all.Stop()
		passOn(ctx, all.ResultChan(), events, selected.StopChan(), given.LabelSelector)
	}()
	return selected, nil
}

// passOn sends what a selector selects until one side stops.
func passOn(
	ctx context.Context, from <-chan watch.Event, to chan<- watch.Event, stopped <-chan struct{}, selector labels.Selector,
) {
	defer close(to)
	for {
		var e watch.Event
		var open bool
		select {
		case e, open = <-from:
			if !open {
				return
			}
		case <-stopped:
			return
		case <-ctx.Done():
			return
		}
		object, ok := e.Object.(client.Object)
		if ok && !selector.Matches(labels.Set(object.GetLabels())) {
			if e.Type != watch.Modified {
				continue
			}
			e.Type = watch.Deleted
		}
		select {
		case to <- e:
		case <-stopped:
			return
		case <-ctx.Done():
			return
		}
	}
}

// store is the API server's storage, and its processing of every object that is stored.
type store struct {
	clienttesting.ObjectTracker
	scheme *runtime.Scheme
	made   atomic.Int64
}

// nodeFinalizer keeps a deleted pod until its kubelet has ended it, as the grace period does.
const nodeFinalizer = "sim.redquake.dev/kubelet"

func (s *store) Create(
	gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.CreateOptions,
) error {
	object := o.(client.Object)
	object.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", s.made.Add(1), time.Now().Unix())))
	object.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	object.SetGeneration(1)
	if err := s.setDefaults(object); err != nil {
		return err
	}
	if err := asStored(object); err != nil {
		return err
	}
	return s.ObjectTracker.Create(gvr, o, ns, options...)
}

func (s *store) setDefaults(object client.Object) error {
	switch o := object.(type) {
	case *corev1.Secret:
		for name, text := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[name] = []byte(text)
		}
		o.StringData = nil
	case *corev1.Pod:
		controllerutil.AddFinalizer(o, nodeFinalizer)
		o.Status.Phase = corev1.PodPending
	case *v1alpha1.RedisLoadTest:
		o.Status = v1alpha1.RedisLoadTestStatus{} // a subresource
		return manifest.Default(o)
	case *v1alpha1.RedisFault:
		o.Status = v1alpha1.RedisFaultStatus{}
		return manifest.Default(o)
	case *v1alpha1.RedisExperiment:
		o.Status = v1alpha1.RedisExperimentStatus{}
		return manifest.Default(o)
	case *v1alpha1.RedisExperimentSchedule:
		o.Status = v1alpha1.RedisExperimentScheduleStatus{}
		return manifest.Default(o)
	}
	return nil
}

func (s *store) Update(
	gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.UpdateOptions,
) error {
	if err := s.follow(gvr, o, ns); err != nil {
		return err
	}
	if err := asStored(o.(client.Object)); err != nil {
		return err
	}
	return s.ObjectTracker.Update(gvr, o, ns, options...)
}

// deleteObject deletes as the API server does: only what the preconditions name, and a pod without grace, or without a
// node, at once.
func deleteObject(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
	var given client.DeleteOptions
	given.ApplyOptions(options)
	stored := object.DeepCopyObject().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(object), stored)
	if err != nil {
		return err
	}
	p := given.Preconditions
	if p != nil && p.UID != nil && *p.UID != stored.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", object)}, object.GetName(),
			fmt.Errorf("the UID is %s, not %s", stored.GetUID(), *p.UID))
	}
	if pod, ok := stored.(*corev1.Pod); ok {
		now := given.GracePeriodSeconds != nil && *given.GracePeriodSeconds == 0
		if now || pod.Spec.NodeName == "" {
			gone := pod.DeletionTimestamp != nil && len(pod.Finalizers) == 1
			before := pod.DeepCopy()
			controllerutil.RemoveFinalizer(pod, nodeFinalizer)
			err := c.Patch(ctx, pod, client.MergeFrom(before))
			if err != nil || gone {
				return err
			}
		} else if pod.DeletionTimestamp != nil {
			return nil
		}
	}
	return c.Delete(ctx, object, options...)
}

func (s *store) Patch(
	gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.PatchOptions,
) error {
	if err := s.follow(gvr, o, ns); err != nil {
		return err
	}
	return s.ObjectTracker.Patch(gvr, o, ns, options...)
}

// follow sets the fields that the next version of an object inherits from the previous one.
func (s *store) follow(gvr schema.GroupVersionResource, o runtime.Object, ns string) error {
	object := o.(client.Object)
	stored, err := s.Get(gvr, ns, object.GetName())
	if err != nil {
		return err
	}
	old := stored.(client.Object)
	object.SetUID(old.GetUID())
	object.SetCreationTimestamp(old.GetCreationTimestamp())
	object.SetGeneration(old.GetGeneration())
	before, after := specOf(old), specOf(object)
	if before.IsValid() && !reflect.DeepEqual(before.Interface(), after.Interface()) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
	pod, ok := o.(*corev1.Pod)
	if ok && pod.DeletionTimestamp != nil && old.GetDeletionTimestamp() == nil {
		grace := int64(30)
		if pod.Spec.TerminationGracePeriodSeconds != nil {
			grace = *pod.Spec.TerminationGracePeriodSeconds
		}
		pod.DeletionTimestamp = &metav1.Time{Time: pod.DeletionTimestamp.Add(time.Duration(grace) * time.Second)}
		pod.DeletionGracePeriodSeconds = &grace
	}
	return nil
}

func specOf(o client.Object) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName("Spec")
}

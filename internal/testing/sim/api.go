// Package sim is a Kubernetes cluster in memory, for tests in virtual time (testing/synctest): an API server, a Job controller with a kubelet that
// runs the real load agent, Redis as clients and faults see it, and operator processes that die at any of their writes. The stand-ins for
// controllers and kubelets work on a real API server, too.
package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// CRDs are the schemas of the kinds that CustomResourceDefinitions define.
type CRDs map[schema.GroupKind]*apiextensionsv1.JSONSchemaProps

// ReadCRDs reads all CustomResourceDefinitions of a directory. Of several versions it takes the first.
func ReadCRDs(dir string) (CRDs, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no CustomResourceDefinitions in %s", dir)
	}
	found := CRDs{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return found, nil
}

// NewAPI is an API server: controller-runtime's fake client, and what a real one adds. It sets UID, creation time, generation and the defaults of the
// CRDs, checks a deletion's preconditions, and keeps the pods of a node until their kubelet lets them go. It validates nothing and collects no garbage;
// Kubelet does the latter.
func NewAPI(scheme *runtime.Scheme, crds CRDs) client.WithWatch {
	stored := &store{
		ObjectTracker: clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()),
		scheme:        scheme, crds: crds,
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(stored).WithGlobalResourceVersionCounter().
		WithStatusSubresource(&v1alpha1.RedisLoadTest{}, &v1alpha1.RedisFault{}).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }).
		Build()
	return interceptor.NewClient(api, interceptor.Funcs{Delete: deleteObject})
}

// store is what the API server keeps, and what it does to every object on the way there.
type store struct {
	clienttesting.ObjectTracker
	scheme *runtime.Scheme
	crds   CRDs
	made   atomic.Int64
}

// nodeFinalizer keeps a deleted pod until its kubelet has ended it, as the grace period does.
const nodeFinalizer = "sim.redquake.dev/kubelet"

func (s *store) Create(gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.CreateOptions) error {
	object := o.(client.Object)
	object.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", s.made.Add(1), time.Now().Unix())))
	object.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	object.SetGeneration(1)
	if err := s.setDefaults(object); err != nil {
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
	}
	gvk, err := apiutil.GVKForObject(object, s.scheme)
	if err != nil {
		return err
	}
	crd, defined := s.crds[gvk.GroupKind()]
	if !defined {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	delete(content, "status") // a subresource
	if err := setDefaults(crd, content); err != nil {
		return err
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	reflect.ValueOf(object).Elem().SetZero()
	return json.Unmarshal(text, object)
}

// setDefaults gives every missing property its default, then its own properties theirs.
func setDefaults(crd *apiextensionsv1.JSONSchemaProps, value any) error {
	switch v := value.(type) {
	case map[string]any:
		for name, property := range crd.Properties {
			if _, there := v[name]; !there && property.Default != nil {
				var def any
				if err := json.Unmarshal(property.Default.Raw, &def); err != nil {
					return err
				}
				v[name] = def
			}
			if err := setDefaults(&property, v[name]); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if crd.Items == nil || crd.Items.Schema == nil {
				break
			}
			if err := setDefaults(crd.Items.Schema, item); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *store) Update(gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.UpdateOptions) error {
	if err := s.follow(gvr, o, ns); err != nil {
		return err
	}
	return s.ObjectTracker.Update(gvr, o, ns, options...)
}

func (s *store) Patch(gvr schema.GroupVersionResource, o runtime.Object, ns string, options ...metav1.PatchOptions) error {
	if err := s.follow(gvr, o, ns); err != nil {
		return err
	}
	return s.ObjectTracker.Patch(gvr, o, ns, options...)
}

// follow gives the next version of an object what it has from the one before.
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
	if pod, ok := o.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && old.GetDeletionTimestamp() == nil {
		grace := int64(30)
		if pod.Spec.TerminationGracePeriodSeconds != nil {
			grace = *pod.Spec.TerminationGracePeriodSeconds
		}
		pod.DeletionTimestamp = &metav1.Time{Time: pod.DeletionTimestamp.Add(time.Duration(grace) * time.Second)}
		pod.DeletionGracePeriodSeconds = &grace
	}
	return nil
}

func specOf(o client.Object) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName("Spec") }

// deleteObject deletes as the API server does: only what the preconditions name, and a pod without grace, or without a node, at once.
func deleteObject(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
	var given client.DeleteOptions
	given.ApplyOptions(options)
	stored := object.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
		return err
	}
	if p := given.Preconditions; p != nil && p.UID != nil && *p.UID != stored.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", object)}, object.GetName(), fmt.Errorf("the UID is %s, not %s", stored.GetUID(), *p.UID))
	}
	if pod, ok := stored.(*corev1.Pod); ok {
		if now := given.GracePeriodSeconds != nil && *given.GracePeriodSeconds == 0; now || pod.Spec.NodeName == "" {
			gone := pod.DeletionTimestamp != nil && len(pod.Finalizers) == 1
			before := pod.DeepCopy()
			controllerutil.RemoveFinalizer(pod, nodeFinalizer)
			if err := c.Patch(ctx, pod, client.MergeFrom(before)); err != nil || gone {
				return err
			}
		} else if pod.DeletionTimestamp != nil {
			return nil
		}
	}
	return c.Delete(ctx, object, options...)
}

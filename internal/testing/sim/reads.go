package sim

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Objects pass through JSON when they are stored, as in a real API server: a time loses what is below a second, an
// empty list is none. Reads copy them.
// The fake client, which stores them as they are, has every read of every object pass through JSON instead: a third of
// the CPU of the tests.

// asStored has an object pass through JSON.
func asStored(object client.Object) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	reflect.ValueOf(object).Elem().SetZero()
	return utiljson.Unmarshal(text, object)
}

// kind returns the kind of an object, or of a list's objects; false if the fake client has to read it.
func (s *store) kind(o runtime.Object) (gvk schema.GroupVersionKind, gvr schema.GroupVersionResource, ok bool) {
	switch o.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return gvk, gvr, false
	}
	gvk, err := apiutil.GVKForObject(o, s.scheme)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	gvr, _ = meta.UnsafeGuessKindToResource(gvk)
	return gvk, gvr, err == nil
}

// getObject reads a copy of an object.
func (s *store) getObject(
	ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	_, gvr, ok := s.kind(object)
	if !ok {
		return c.Get(ctx, key, object, options...)
	}
	found, err := s.Get(gvr, key.Namespace, key.Name)
	if err != nil {
		return err
	}
	if reflect.TypeOf(found) != reflect.TypeOf(object) {
		return c.Get(ctx, key, object, options...)
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(found).Elem())
	asRead(object)
	return nil
}

// listObjects reads copies of the objects of a namespace that have the labels.
func (s *store) listObjects(
	ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
) error {
	var given client.ListOptions
	given.ApplyOptions(options)
	gvk, gvr, ok := s.kind(list)
	if !ok || given.FieldSelector != nil {
		return c.List(ctx, list, options...)
	}
	found, err := s.List(gvr, gvk, given.Namespace)
	if err != nil {
		return err
	}
	objects, err := meta.ExtractList(found)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o runtime.Object) bool {
		return given.LabelSelector != nil && !given.LabelSelector.Matches(labels.Set(o.(client.Object).GetLabels()))
	})
	for _, o := range objects {
		asRead(o.(client.Object))
	}
	reflect.ValueOf(list).Elem().SetZero()
	return meta.SetList(list, objects)
}

// asRead removes what clients of typed objects do not get.
func asRead(object client.Object) {
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	object.SetManagedFields(nil)
}

// patchStatus merges a patch into a status. The fake client has the whole object pass through JSON several times for
// that, which was a third of the CPU of the tests, too.
func (s *store) patchStatus(
	ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption,
) error {
	_, gvr, ok := s.kind(object)
	var given client.SubResourcePatchOptions
	given.ApplyOptions(options)
	if !ok || subresource != "status" || patch.Type() != types.MergePatchType || len(given.DryRun) > 0 ||
		given.SubResourceBody != nil {
		return c.SubResource(subresource).Patch(ctx, object, patch, options...)
	}
	changes, err := patch.Data(object)
	if err != nil {
		return err
	}
	for {
		stored, err := s.Get(gvr, object.GetNamespace(), object.GetName())
		if err != nil {
			return err
		}
		before, err := json.Marshal(stored)
		if err != nil {
			return err
		}
		merged, err := jsonpatch.MergePatch(before, changes)
		if err != nil {
			return err
		}
		after := reflect.New(reflect.TypeOf(stored).Elem()).Interface().(client.Object)
		if err := utiljson.Unmarshal(merged, after); err != nil {
			return err
		}
		asked := after.GetResourceVersion() != stored.(client.Object).GetResourceVersion()
		err = c.SubResource(subresource).Update(ctx, after)
		if apierrors.IsConflict(err) && !asked {
			continue // another writer was faster; only a patch that names a version minds
		}
		if err == nil {
			reflect.ValueOf(object).Elem().Set(reflect.ValueOf(after).Elem())
			asRead(object)
		}
		return err
	}
}

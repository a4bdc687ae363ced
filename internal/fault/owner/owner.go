// Package owner finds the custom resource to which the workload of a Redis belongs, and what its
// operator would take back of a fault.
package owner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is a custom resource to which the workload of a Redis belongs.
type Owner struct {
	Reference metav1.OwnerReference

	object   *unstructured.Unstructured // nil = it cannot be read
	operator *operator                  // nil = it is not known
}

// deepest is how many controllers above one another are followed.
const deepest = 5

// Of follows the controllers of an object, a StatefulSet or a pod, to the uppermost one that is no
// part of Kubernetes; nil where there is none. Controllers that cannot be read are not followed
// further: without the right to read them, they are still known by name.
func Of(ctx context.Context, live client.Reader, object client.Object) (*Owner, error) {
	namespace, reference := object.GetNamespace(), metav1.GetControllerOf(object)
	_, isPod := object.(*corev1.Pod)
	if isPod && reference != nil && reference.Kind == "StatefulSet" {
		set := &appsv1.StatefulSet{}
		err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, set)
		// it was deleted without its pods, or nobody knows
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil //nolint:nilnil // there is none
		} else if err != nil {
			return nil, fmt.Errorf("read StatefulSet %s: %w", reference.Name, err)
		}
		reference = metav1.GetControllerOf(set)
	}
	var found *Owner
	for range deepest {
		if reference == nil || isKubernetes(reference.APIVersion) {
			break
		}
		found = &Owner{Reference: *reference, operator: operatorOf(reference)}
		above := &unstructured.Unstructured{}
		above.SetGroupVersionKind(schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind))
		err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, above)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", reference.Kind, reference.Name, err)
		}
		found.object = above
		reference = metav1.GetControllerOf(above)
	}
	return found, nil
}

func isKubernetes(apiVersion string) bool {
	return apiVersion == "v1" || strings.HasPrefix(apiVersion, "apps/")
}

// String names the resource, such as "RedisFailover cache (databases.spotahome.com/v1)".
func (o *Owner) String() string {
	return fmt.Sprintf("%s %s (%s)", o.Reference.Kind, o.Reference.Name, o.Reference.APIVersion)
}

// Paused is the annotation that keeps its operator from acting, as text; "" where it acts, or where
// that cannot be read.
func (o *Owner) Paused() string {
	if o.object == nil || o.operator == nil || o.operator.pause == nil {
		return ""
	}
	name := o.operator.pause(o.Reference.Kind)
	if o.object.GetAnnotations()[name] == "true" {
		return name + "=true"
	}
	return ""
}

// Sets is the field of the resource in which a setting of the server stands that its operator
// restores; "" where it does not restore that.
func (o *Owner) Sets(name string) string {
	if o.object == nil || o.operator == nil {
		return ""
	}
	field, only := o.operator.settings, o.operator.only
	value, found, err := unstructured.NestedFieldNoCopy(o.object.Object, strings.Split(field, ".")...)
	if err != nil || !found || !lists(value, name) ||
		len(only) > 0 && !slices.Contains(only, strings.ToLower(name)) {
		return ""
	}
	return field
}

// lists reports whether a setting is in a list of "name value", or in a map by name.
func lists(value any, name string) bool {
	switch all := value.(type) {
	case []any:
		for _, entry := range all {
			text, ok := entry.(string)
			if ok && strings.EqualFold(firstWord(text), name) {
				return true
			}
		}
	case map[string]any:
		for key := range all {
			if strings.EqualFold(key, name) {
				return true
			}
		}
	}
	return false
}

func firstWord(text string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return words[0]
	}
	return ""
}

// Replicas says where the number of servers is set instead.
func (o *Owner) Replicas() string {
	return o.advice(func(k *operator) string { return k.replicas[o.Reference.Kind] })
}

// Startup says where a setting is given that the server takes at its start only.
func (o *Owner) Startup() string {
	return o.advice(func(k *operator) string { return k.startup })
}

// Template says where the template of pods is changed.
func (o *Owner) Template() string {
	return o.advice(func(*operator) string { return "" })
}

// advice is what to do so that a fault is not taken back, by the field of the resource.
func (o *Owner) advice(field func(*operator) string) string {
	text := "change it there"
	if o.operator == nil {
		return text
	}
	if f := field(o.operator); f != "" {
		text = "set " + f + " there"
	}
	return text + o.PauseAdvice()
}

// PauseAdvice is ", or pause its operator by ...", if that can be done.
func (o *Owner) PauseAdvice() string {
	if o.operator == nil || o.operator.pause == nil {
		return ""
	}
	return fmt.Sprintf(", or pause its operator by the annotation %s=true on it",
		o.operator.pause(o.Reference.Kind))
}

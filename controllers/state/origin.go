package state

import (
	"context"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Noted reports whether it is noted on an object that this very one has begun to run.
func Noted(o client.Object) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationBegunAs] == string(o.GetUID())
}

// SetNote changes an object so that it is noted; it does not store that.
func SetNote(o client.Object) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationBegunAs] = string(o.GetUID())
	o.SetAnnotations(annotations)
}

// StoreNote notes on an object, as it was read, that it has begun to run. Without the optimistic
// lock, the UID of a deleted object could get onto another one of its name, which would never run
// then.
func StoreNote(ctx context.Context, c client.Client, read client.Object) error {
	changed := read.DeepCopyObject().(client.Object)
	SetNote(changed)
	err := c.Patch(ctx, changed, OptimisticPatch(read))
	if err != nil {
		return fmt.Errorf("patch the annotation %s: %w", v1alpha1.AnnotationBegunAs, err)
	}
	return nil
}

// KeepNote restores the note on an object that runs. Nothing waits for it: what runs is ended and
// reverted, whoever removes or refuses the annotation.
func KeepNote(ctx context.Context, c client.Client, read client.Object) {
	if Noted(read) {
		return
	}
	err := StoreNote(ctx, c, read)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		log.FromContext(ctx).Error(err,
			"Failed to note that the object has begun to run: a copy of it from a backup would run again")
	}
}

// Restored is why an object whose status shows no run must not run: it is a copy of one that had
// begun. It is "" where it may run.
func Restored(o client.Object, kind string) string {
	if !isCopy(o) {
		return ""
	}
	ref := strings.ToLower(kind) + "/" + o.GetName()
	return fmt.Sprintf(
		"this is a copy, as from a backup, of an object that had begun to run (UID %s), and an object runs once: nothing was done. "+
			"To run it: kubectl annotate -n %s %s %s-. To run its spec under a new name: redquake rerun -n %[2]s %[3]s",
		o.GetAnnotations()[v1alpha1.AnnotationBegunAs], o.GetNamespace(), ref, v1alpha1.AnnotationBegunAs)
}

func isCopy(o client.Object) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationBegunAs] != "" && !Noted(o)
}

// MayRun reports whether an object that has ended as a copy may run now, as somebody has removed
// the annotation: its status is to be discarded.
func MayRun(o client.Object, conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonRestored &&
		!isCopy(o)
}

package state

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
)

// Results reads the ConfigMap with the record of a load test; nil = there is none yet, or one of a
// deleted test of the same name, which is not garbage-collected yet.
func Results(
	ctx context.Context, reader client.Reader, test *v1alpha1.RedisLoadTest,
) (*corev1.ConfigMap, error) {
	var stored corev1.ConfigMap
	name := children.ResultsName(test.Name)
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: name}, &stored); {
	case apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(&stored, test):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record in ConfigMap %s: %w", name, err)
	}
	return &stored, nil
}

// StoreResult stores a result beside the record of a load test: put puts it into the ConfigMap.
// Without a record, which says why there is none, it is not stored either. The status has the
// figures, so that what put and the API server refuse now and later is an entry of the log; other
// errors are to be tried again.
func StoreResult(
	ctx context.Context, c client.Client, test *v1alpha1.RedisLoadTest,
	put func(*corev1.ConfigMap) error,
) error {
	stored, err := Results(ctx, c, test)
	if stored == nil {
		return err
	}
	changed := stored.DeepCopy()
	if err := put(changed); err != nil {
		log.FromContext(ctx).Error(err, "The result is not stored beside the record")
		return nil
	}
	if equality.Semantic.DeepEqual(stored, changed) {
		return nil
	}
	switch err = c.Update(ctx, changed); {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsRequestEntityTooLargeError(err):
		log.FromContext(ctx).Error(err, "The result is not stored beside the record")
		return nil
	case err != nil:
		return fmt.Errorf("store the result in ConfigMap %s: %w", stored.Name, err)
	}
	return nil
}

package loadtest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
)

// resultsStore keeps a session's checkpoint in the test's results ConfigMap. One object, one write: the record and how far each pod
// was acknowledged cannot disagree.
type resultsStore struct {
	client client.Client
	test   *v1alpha1.RedisLoadTest
}

// Load implements collect.Store.
func (s resultsStore) Load(ctx context.Context) ([]byte, error) {
	var stored corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.test.Namespace, Name: children.ResultsName(s.test.Name)}, &stored)
	if apierrors.IsNotFound(err) || (err == nil && !metav1.IsControlledBy(&stored, s.test)) {
		return nil, nil // none yet, or one of a deleted test of the same name that is still to be collected
	}
	return stored.BinaryData[children.ResultsSeriesKey], err
}

// Save implements collect.Store. A ConfigMap of that name that is not the test's own is left alone. It is updated before it is
// created: a namespace whose quota is used up refuses a creation before it says that the object is already there.
func (s resultsStore) Save(ctx context.Context, data []byte) error {
	results := children.ResultsConfigMap(s.test, data)
	var stored corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKeyFromObject(results), &stored)
	switch {
	case apierrors.IsNotFound(err):
		return s.client.Create(ctx, results)
	case err != nil:
		return err
	case !metav1.IsControlledBy(&stored, s.test):
		return fmt.Errorf("ConfigMap %s belongs to another object: the record cannot be stored under that name", results.Name)
	}
	results.ResourceVersion = stored.ResourceVersion
	return s.client.Update(ctx, results)
}

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

// resultsStore stores the checkpoint of a session in the results ConfigMap of the test. The record and the acknowledged position of each pod are
// written at once, so that they are consistent.
type resultsStore struct {
	client client.Client
	test   *v1alpha1.RedisLoadTest
}

// Load implements collect.Store.
func (s resultsStore) Load(ctx context.Context) ([]byte, error) {
	var stored corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.test.Namespace, Name: children.ResultsName(s.test.Name)}, &stored)
	if apierrors.IsNotFound(err) || (err == nil && !metav1.IsControlledBy(&stored, s.test)) {
		return nil, nil // none yet, or one of a deleted test of the same name, which is not garbage-collected yet
	}
	if err != nil {
		return nil, fmt.Errorf("read the record in ConfigMap %s: %w", children.ResultsName(s.test.Name), err)
	}
	return stored.BinaryData[children.ResultsSeriesKey], nil
}

// Save implements collect.Store. It does not overwrite a ConfigMap with another owner. An update comes before a creation: in a namespace with an
// exhausted quota, a creation is rejected even if the object exists.
func (s resultsStore) Save(ctx context.Context, data []byte) error {
	results := children.ResultsConfigMap(s.test, data)
	var stored corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKeyFromObject(results), &stored)
	switch {
	case apierrors.IsNotFound(err):
		return s.client.Create(ctx, results)
	case err != nil:
		return fmt.Errorf("read ConfigMap %s: %w", results.Name, err)
	case !metav1.IsControlledBy(&stored, s.test):
		return fmt.Errorf("ConfigMap %s belongs to another object: the record cannot be stored under that name", results.Name)
	}
	results.ResourceVersion = stored.ResourceVersion
	return s.client.Update(ctx, results)
}

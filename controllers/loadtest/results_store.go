package loadtest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/result"
)

// resultsStore stores the checkpoint of a session in the results ConfigMap of the test. The record and the acknowledged position of each pod are
// written at once, so that they are consistent.
type resultsStore struct {
	client client.Client
	test   *v1alpha1.RedisLoadTest
}

// Load implements collect.Store.
func (s resultsStore) Load(ctx context.Context) ([]byte, error) {
	stored, err := s.stored(ctx)
	if stored == nil {
		return nil, err // none yet, or one of a deleted test of the same name, which is not garbage-collected yet
	}
	return stored.BinaryData[children.ResultsSeriesKey], nil
}

// stored is the ConfigMap of the test; nil = there is none.
func (s resultsStore) stored(ctx context.Context) (*corev1.ConfigMap, error) {
	var stored corev1.ConfigMap
	name := children.ResultsName(s.test.Name)
	switch err := s.client.Get(ctx, client.ObjectKey{Namespace: s.test.Namespace, Name: name}, &stored); {
	case apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(&stored, s.test):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the record in ConfigMap %s: %w", name, err)
	}
	return &stored, nil
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
	results.ResourceVersion, results.Data = stored.ResourceVersion, stored.Data
	return s.client.Update(ctx, results)
}

// saveResult stores the result of the run beside its record. Without a record, which says why there is none, it is not stored either.
func (s resultsStore) saveResult(ctx context.Context, load *result.Load) error {
	stored, err := s.stored(ctx)
	if stored == nil {
		return err
	}
	text, err := result.EncodeShortLoad(load, children.MaxResultsDocument)
	if err != nil { // now and later: the status has the figures
		log.FromContext(ctx).Error(err, "The result is not stored beside the record")
		return nil
	}
	if stored.Data[children.ResultsDocumentKey] == string(text) {
		return nil
	}
	stored.Data = map[string]string{children.ResultsDocumentKey: string(text)}
	switch err = s.client.Update(ctx, stored); {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err): // likewise
		log.FromContext(ctx).Error(err, "The result is not stored beside the record")
		return nil
	case err != nil:
		return fmt.Errorf("store the result in ConfigMap %s: %w", stored.Name, err)
	}
	return nil
}

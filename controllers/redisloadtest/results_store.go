package redisloadtest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/document"
)

// resultsStore stores the checkpoint of a session in the results ConfigMap of the test. The record
// and the acknowledged position of each pod are written at once, so that they are consistent.
type resultsStore struct {
	client client.Client
	test   *v1alpha1.RedisLoadTest
}

// Load implements collect.Store.
func (s resultsStore) Load(ctx context.Context) ([]byte, error) {
	stored, err := state.Results(ctx, s.client, s.test)
	if stored == nil {
		return nil, err
	}
	return stored.BinaryData[children.ResultsSeriesKey], nil
}

// saveAttempts is how often a checkpoint is tried at once: results may be stored beside it
// meanwhile. It is tried again later, with a back-off.
const saveAttempts = 2

// Save implements collect.Store. It does not overwrite a ConfigMap with another owner.
func (s resultsStore) Save(ctx context.Context, data []byte) (err error) {
	for range saveAttempts {
		if err = s.save(ctx, data); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// save stores the record, and leaves the results beside it. An update comes before a creation: in a
// namespace with an exhausted quota, a creation is rejected even if the object exists.
func (s resultsStore) save(ctx context.Context, data []byte) error {
	results := children.ResultsConfigMap(s.test, data)
	var stored corev1.ConfigMap
	err := s.client.Get(ctx, client.ObjectKeyFromObject(results), &stored)
	switch {
	case apierrors.IsNotFound(err):
		return s.client.Create(ctx, results)
	case err != nil:
		return fmt.Errorf("read ConfigMap %s: %w", results.Name, err)
	case !metav1.IsControlledBy(&stored, s.test):
		return fmt.Errorf(
			"ConfigMap %s belongs to another object: the record cannot be stored under that name",
			results.Name)
	}
	results.ResourceVersion, results.Data = stored.ResourceVersion, stored.Data
	faults, ok := stored.BinaryData[children.ResultsFaultsKey]
	if ok {
		results.BinaryData[children.ResultsFaultsKey] = faults
	}
	return s.client.Update(ctx, results)
}

// saveResult stores the result of the run beside its record.
func (s resultsStore) saveResult(ctx context.Context, load *result.Load) error {
	return state.StoreResult(ctx, s.client, s.test, func(stored *corev1.ConfigMap) error {
		text, err := document.EncodeShortLoad(load, children.MaxResultsDocument)
		if err == nil {
			stored.Data = map[string]string{children.ResultsDocumentKey: string(text)}
		}
		return err
	})
}

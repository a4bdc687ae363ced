package experiment

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/problem"
)

// What was stored since a record or a history was read is not overwritten, and what belongs to somebody else is not, either.
func TestRecordIsStoredInPlaceOfWhatWasRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	inCluster := fake.NewClientBuilder().Build()
	of := func(name string) recordStore {
		return recordStore{inCluster, &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "1"}}}
	}
	save := func(s recordStore, r *experiment.Record) error { return s.save(ctx, r) }
	for name, kept := range map[string]struct {
		read func(recordStore) (save func() error, is bool)
	}{
		"record": {func(s recordStore) (func() error, bool) {
			r, err := s.load(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if r == nil {
				r = &experiment.Record{Version: experiment.RecordVersion}
			}
			return func() error { return save(s, r) }, r.Revision != ""
		}},
		"history": {func(s recordStore) (func() error, bool) {
			h, err := s.loadHistory(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return s.saveHistory(ctx, h, nil) }, h.Revision != ""
		}},
	} {
		s := of(name)
		first, _ := kept.read(s)
		second, _ := kept.read(s)
		if err := first(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := second(); !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s: a second one is created: %v", name, err)
		}
		second, is := kept.read(s)
		if err := first(); err != nil || !is {
			t.Errorf("%s: it is stored again: %v, read %v", name, err, is)
		}
		if err := second(); !apierrors.IsConflict(err) {
			t.Errorf("%s: it was changed meanwhile: %v", name, err)
		}
		var stored corev1.ConfigMap
		if err := inCluster.Get(ctx, client.ObjectKey{Namespace: "n", Name: name + "-experiment"}, &stored); err != nil {
			t.Fatal(err)
		}
		stored.OwnerReferences = nil // as from a backup
		if err := inCluster.Update(ctx, &stored); err != nil {
			t.Fatal(err)
		}
		if name == "history" {
			again, is := kept.read(s)
			if err := again(); err != nil || !is {
				t.Errorf("a history without an owner: %v, read %v", err, is)
			}
			if err := inCluster.Get(ctx, client.ObjectKeyFromObject(&stored), &stored); err != nil || !metav1.IsControlledBy(&stored, s.experiment) {
				t.Errorf("it has the owners %+v, %v", stored.OwnerReferences, err)
			}
			stored.OwnerReferences[0].UID = "2"
			if err := inCluster.Update(ctx, &stored); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, err := range map[string]error{"record": save(of("record"), &experiment.Record{}), "history": func() error { _, err := of("history").loadHistory(ctx); return err }()} {
		if found, _ := problem.From(err); found == nil || found.Reason != v1alpha1.ReasonObjectNotOwned || found.Lasting {
			t.Errorf("%s of somebody else: %v", name, err)
		}
	}
}

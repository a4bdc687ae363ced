package stored

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

// What was stored since a record or a history was read is not overwritten, and what belongs to somebody else is not,
// either.
func TestRecordIsStoredInPlaceOfWhatWasRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	inCluster := fake.NewClientBuilder().Build()
	e := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "nightly", UID: "1"}}
	schedule := &v1alpha1.RedisExperimentSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "nightly", UID: "2"}}
	for name, kept := range map[string]struct {
		owner client.Object
		read  func() (save func() error, is bool)
	}{
		"experiment": {e, func() (func() error, bool) {
			r, err := Record(ctx, inCluster, e)
			if err != nil {
				t.Fatal(err)
			}
			if r == nil {
				r = &experiment.Record{Version: experiment.RecordVersion}
			}
			return func() error { return SaveRecord(ctx, inCluster, e, r) }, r.Revision != ""
		}},
		"history": {schedule, func() (func() error, bool) {
			h, err := History(ctx, inCluster, schedule)
			if err != nil {
				t.Fatal(err)
			}
			return func() error { return SaveHistory(ctx, inCluster, schedule, h, nil) }, h.Revision != ""
		}},
	} {
		first, _ := kept.read()
		second, _ := kept.read()
		if err := first(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := second(); !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s: a second one is created: %v", name, err)
		}
		second, is := kept.read()
		if err := first(); err != nil || !is {
			t.Errorf("%s: it is stored again: %v, read %v", name, err, is)
		}
		if err := second(); !apierrors.IsConflict(err) {
			t.Errorf("%s: it was changed meanwhile: %v", name, err)
		}
		var stored corev1.ConfigMap
		if err := inCluster.Get(ctx, client.ObjectKey{Namespace: "n", Name: "nightly-" + name}, &stored); err != nil {
			t.Fatal(err)
		}
		stored.OwnerReferences = nil // as from a backup
		if err := inCluster.Update(ctx, &stored); err != nil {
			t.Fatal(err)
		}
		if name == "history" {
			again, is := kept.read()
			if err := again(); err != nil || !is {
				t.Errorf("a history without an owner: %v, read %v", err, is)
			}
			if err := inCluster.Get(ctx, client.ObjectKeyFromObject(&stored), &stored); err != nil ||
				!metav1.IsControlledBy(&stored, kept.owner) {
				t.Errorf("it has the owners %+v, %v", stored.OwnerReferences, err)
			}
			stored.OwnerReferences[0].UID = "3"
			if err := inCluster.Update(ctx, &stored); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := History(ctx, inCluster, schedule)
	for name, err := range map[string]error{
		"record":  SaveRecord(ctx, inCluster, e, &experiment.Record{}),
		"history": err,
	} {
		if found, _ := problem.From(err); found == nil || found.Reason != v1alpha1.ReasonObjectNotOwned || found.Lasting {
			t.Errorf("%s of somebody else: %v", name, err)
		}
	}
}

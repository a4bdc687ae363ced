package state

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/apitest"
)

func TestIsStale(t *testing.T) {
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kill"}}
	c := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(f.DeepCopy()).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(f), f); err != nil {
		t.Fatal(err)
	}
	if stale, err := IsStale(t.Context(), c, "RedisFault", f); stale || err != nil {
		t.Errorf("a copy that was just read: stale %v, %v", stale, err)
	}
	changed := f.DeepCopy()
	changed.Spec.Abort = true
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if stale, err := IsStale(t.Context(), c, "RedisFault", f); !stale || err != nil {
		t.Errorf("a copy from before a change: stale %v, %v", stale, err)
	}
	if err := c.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if stale, err := IsStale(t.Context(), c, "RedisFault", f); !stale || !apierrors.IsNotFound(err) {
		t.Errorf("a deleted object: stale %v, %v", stale, err)
	}
}

func TestResultForPatchError(t *testing.T) {
	resource, other := schema.GroupResource{Resource: "redisfaults"}, errors.New("forbidden")
	for _, tc := range []struct {
		err, want error
		result    ctrl.Result
	}{
		{apierrors.NewConflict(resource, "kill", nil), nil, Stale()},
		{apierrors.NewNotFound(resource, "kill"), nil, ctrl.Result{}},
		{other, other, ctrl.Result{}},
	} {
		if result, err := ResultForPatchError(tc.err); !errors.Is(err, tc.want) || result != tc.result {
			t.Errorf("%v: %+v, %v", tc.err, result, err)
		}
	}
}

func TestRequeue(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		again bool
		at    time.Time
		want  time.Duration
	}{
		{true, now.Add(time.Hour), time.Millisecond},
		{false, time.Time{}, 0},
		{false, now.Add(time.Second), time.Second},
		{false, now.Add(-time.Second), time.Millisecond},
	} {
		if got := Requeue(tc.again, tc.at, now).RequeueAfter; got != tc.want {
			t.Errorf("again %v, at %s: %s, want %s", tc.again, tc.at.Sub(now), got, tc.want)
		}
	}
}

package claims

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/lock"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// A fault that is reverted while the others are read is seen to act, or to have acted: never neither, however many
// requests that takes, and after whichever of them it happens.
func TestBesideMissesNoneThatEnds(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recorded := func(name string, at time.Time) *v1alpha1.RedisFault {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		f.Spec.Action.Type = v1alpha1.FaultPodKill
		f.Status = v1alpha1.RedisFaultStatus{
			StartTime: new(metav1.NewMicroTime(at)),
			Holding:   new(true),
			Targets:   []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u0"}},
		}
		return f
	}
	for _, everywhere := range []bool{false, true} {
		for ends := range 3 { // after so many lists
			t.Run(fmt.Sprintf("everywhere %t, after %d", everywhere, ends), func(t *testing.T) {
				own, other := recorded("own", now), recorded("other", now.Add(-time.Minute))
				other.Status.InjectedAt = new(metav1.NewMicroTime(now.Add(-time.Second)))
				lists := 0
				end := func(c client.WithWatch) {
					if lists != ends {
						return
					}
					changed := &v1alpha1.RedisFault{}
					if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), changed); err != nil {
						t.Fatal(err)
					}
					changed.Status.Holding, changed.Status.RevertedAt = nil, new(metav1.NewMicroTime(now.Add(time.Second)))
					if err := c.Update(t.Context(), changed); err != nil {
						t.Fatal(err)
					}
				}
				reader := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(own, other).
					WithIndex(&v1alpha1.RedisFault{}, Holding, func(o client.Object) []string {
						if o.(*v1alpha1.RedisFault).Status.Holding == nil {
							return nil
						}
						return []string{"true"}
					}).WithInterceptorFuncs(interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
						end(c)
						lists++
						return c.List(ctx, list, o...)
					},
				}).Build()
				if err := reader.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
					t.Fatal(err)
				}
				claim, _ := lock.Held(own, TraitsOf(own))
				r := Reader{APIReader: reader, Clock: testingclock.NewFakePassiveClock(now.Add(time.Minute))}
				held, known, acted, err := r.Beside(t.Context(), own, claim, everywhere)
				if err != nil || !known {
					t.Fatalf("known %t, %v", known, err)
				}
				acts := false
				for _, c := range held {
					acts = acts || c.Fault.Name == "other"
				}
				if !acts && acted != "other" {
					t.Errorf("acts %t, has acted: %q", acts, acted)
				}
			})
		}
	}
}

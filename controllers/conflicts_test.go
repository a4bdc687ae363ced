package controllers

import (
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
)

// An operator whose writes all end in a conflict from some instant on, as its cache has old copies, tries again with a
// back-off: one that stays in that state must not occupy the API server.
func TestConflictsAreNoLoop(t *testing.T) {
	t.Parallel()
	for _, writes := range []int{0, 1, 2, 3, 5, 8, 13, 21, 34} { // so many are accepted
		t.Run(fmt.Sprintf("after %d writes", writes), func(t *testing.T) {
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				var mu sync.Mutex
				accepted, refused := 0, map[string]int{}
				startOperator(w.place, spy{Before: func(by write) error {
					mu.Lock()
					defer mu.Unlock()
					if accepted++; accepted <= writes {
						return nil
					}
					refused[fmt.Sprintf("%s %T %s", by.Verb, by.Object, by.Object.GetName())]++
					return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, by.Object.GetName(), nil)
				}})
				w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration = length(
						20 * time.Second)
				}))
				w.create(newFault("kill", "run", v1alpha1.FaultPodKill, nil))
				w.create(newExperiment("compare", redis.address(), nil))
				time.Sleep(5 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if len(refused) == 0 {
					t.Error("the operator writes nothing more")
				}
				for what, n := range refused { // at 50, 100, 200 ms ... 10 s, and then every 10 s; and whenever its reason changes
					if n > 100 {
						t.Errorf("%s was tried %d times in 5 minutes", what, n)
					}
				}
			})
		})
	}
}

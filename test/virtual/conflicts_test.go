package virtual

import (
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// An operator whose writes all end in a conflict from some instant on, as its cache has old copies, tries again with a
// back-off: one that stays in that state must not occupy the API server.
func TestConflictsAreNoLoop(t *testing.T) {
	t.Parallel()
	for _, writes := range []int{0, 1, 2, 3, 5, 8, 13, 21, 34} { // so many are accepted
		t.Run(fmt.Sprintf("after %d writes", writes), func(t *testing.T) {
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				w.Kubelet.Start()
				var mu sync.Mutex
				accepted, refused := 0, map[string]int{}
				operatortest.StartOperator(w.Place, operatortest.Spy{Before: func(by operatortest.Write) error {
					mu.Lock()
					defer mu.Unlock()
					if accepted++; accepted <= writes {
						return nil
					}
					refused[fmt.Sprintf("%s %T %s", by.Verb, by.Object, by.Object.GetName())]++
					return apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, by.Object.GetName(), nil)
				}})
				w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration = operatortest.Length(
						20 * time.Second)
				}))
				w.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, nil))
				w.Create(operatortest.NewExperiment("compare", redis.Address(), nil))
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

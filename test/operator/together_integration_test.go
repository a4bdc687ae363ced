//go:build integration

package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// With allow: [AllCopies] all pods are deleted at once: no request waits for another. What is done by halves is said as
// such.
func TestAllPodsAtOnce(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	const pods = 4
	fleet := stage.StartFleet(p, pods, nil)
	operatortest.StartKubelet(p, nil)
	var mu sync.Mutex
	deleted := map[string][]time.Time{} // by pod
	together, requested := make(chan struct{}), 0
	var spared atomic.Bool
	operatortest.StartOperator(p, operatortest.Spy{Before: func(w operatortest.Write) error {
		pod, is := w.Object.(*corev1.Pod)
		if !is || w.Verb != "delete" || !strings.HasPrefix(pod.Name, "redis-") {
			return nil
		}
		mu.Lock()
		deleted[pod.Name] = append(deleted[pod.Name], w.At)
		if requested++; requested == pods {
			close(together)
		}
		mu.Unlock()
		select {
		case <-together:
		case <-time.After(20 * time.Second):
			t.Errorf("the request to delete %s is answered before those for the others come", pod.Name)
		}
		if spared.Load() && pod.Name == "redis-2" {
			return errors.New("an admission webhook denies it")
		}
		return nil
	}})
	p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target, test.Spec.Load.Duration = stage.RedisPods(fleet.Address(0)), operatortest.Length(time.Hour)
	}))
	all := func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After = operatortest.Length(0)
		f.Spec.Select = v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}
		f.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowAllCopies, v1alpha1.AllowDataLoss}
	}
	p.Create(operatortest.NewFault("together", "run", v1alpha1.FaultPodKill, all))
	f := p.FaultHasReason("together", 2*time.Minute, v1alpha1.ReasonObserving)
	mu.Lock()
	var requests, injected []time.Time
	for _, times := range deleted {
		requests = append(requests, times...)
	}
	clear(deleted)
	mu.Unlock()
	for _, target := range f.Status.Targets {
		injected = append(injected, target.InjectedAt.Time)
	}
	// How close they are depends on the machine; in virtual time it is exact.
	for what, times := range map[string][]time.Time{"requests": requests, "status.targets[].injectedAt": injected} {
		slices.SortFunc(times, time.Time.Compare)
		if len(times) != pods {
			t.Fatalf("%s: %v, want %d", what, times, pods)
		}
		t.Logf("%s: %d within %s", what, pods, times[pods-1].Sub(times[0]))
	}
	p.MustChange(operatortest.Change(p, f, func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	p.FaultEnds("together", time.Minute)
	p.Until("the fleet serves again", time.Minute, func() bool {
		return fleet.Shows()["roles"] == fmt.Sprintf("1 primary, %d replicas in sync", pods-1)
	}, func() string { return fleet.Shows()["roles"] })

	spared.Store(true)
	p.Create(operatortest.NewFault("half", "run", v1alpha1.FaultPodKill, all))
	f = p.FaultEnds("half", 3*time.Minute)
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Reason != v1alpha1.ReasonInjectionFailed ||
		!strings.Contains(c.Message, "3 of 4 pods were deleted: pod redis-2: ") {
		t.Errorf("Failed is %+v", c)
	}
	if f.Status.Effect == v1alpha1.EffectNotObserved ||
		f.Status.Effect != "" && !strings.HasPrefix(f.Status.EffectEvidence, "3 of 4 pods were deleted: ") {
		t.Errorf("the effect is %s: %s", f.Status.Effect, f.Status.EffectEvidence)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"redis-0", "redis-1", "redis-3"} {
		if len(deleted[name]) != 1 {
			t.Errorf("%s was deleted %d times", name, len(deleted[name]))
		}
	}
	if len(deleted["redis-2"]) < 2 {
		t.Errorf("redis-2: %d attempts", len(deleted["redis-2"]))
	}
}

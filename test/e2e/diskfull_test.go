//go:build e2e

package e2e_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// TestDiskFull fills the volume of a server with an append-only file: it refuses writes until the volume has room again,
// as a writer of the test's own sees it, too.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "diskfull")
	n.applyRedis(onClass("sized"))
	initial := n.currentState("redis")
	load := n.steadyLoad("checkout-cache", standaloneTarget(), 15*time.Minute)
	load.Spec.Workload.Commands = []v1alpha1.WorkloadCommand{{Name: "set", Command: []string{"SET", "{key}", "{value}"}}}
	n.create(load)
	n.waitLoadTest(load.Name, patience, v1alpha1.ReasonRunning)
	n.flows("redis")
	written := n.writes()
	fault := &v1alpha1.RedisFault{}
	n.sample("diskfull.yaml", fault)
	fault.Spec.Duration = span(10 * time.Second)
	n.create(fault)
	done := n.waitFault(fault.Name, 3*patience, v1alpha1.ReasonSucceeded)
	seen, refusals := written()

	n.isReverted(done)
	n.waitForState("redis", initial)
	if done.Status.Effect != v1alpha1.EffectConfirmed || !strings.Contains(done.Status.EffectEvidence, "aof_last_write_status:err") {
		t.Errorf("effect %s: %s", done.Status.Effect, done.Status.EffectEvidence)
	}
	i := done.Status.Impact
	if i == nil || !i.Recovered {
		t.Fatalf("impact %+v, want recovered", i)
	}
	_, gap := longestGap(seen, done.Status.InjectedAt.Add(-time.Second))
	t.Logf("the load saw an outage of %s, the test's own writer one of %s, and %d refusals: %s", i.Outage.Value.Duration, gap,
		len(refusals), refusals[0])
	if d := i.Outage.Value.Duration - gap; d.Abs() > 2*time.Second || gap < 7*time.Second {
		t.Errorf("the load saw an outage of %s, the writer one of %s", i.Outage.Value.Duration, gap)
	}
	if !strings.HasPrefix(refusals[0], "MISCONF ") {
		t.Errorf("writes were refused by %q", refusals[0])
	}
	n.impactFigures("diskFull", i, map[string]string{"outage": "7s"})
}

// TestDiskFullSharedVolume: a volume that is a folder on the disk of its node is not filled.
func TestDiskFullSharedVolume(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "diskshared")
	n.applyRedis(nil)
	n.create(n.steadyLoad("checkout-cache", standaloneTarget(), 15*time.Minute))
	n.waitLoadTest("checkout-cache", patience, v1alpha1.ReasonRunning)
	fault := &v1alpha1.RedisFault{}
	n.sample("diskfull.yaml", fault)
	n.create(fault)
	done := n.waitFault(fault.Name, 3*patience, v1alpha1.ReasonNotSupported)
	_, message, _, _ := completeReason(done.Status.Conditions)
	if want := "the volume of claim data-redis-0 is not filled: it is the folder "; !strings.Contains(message, want) ||
		len(done.Status.Targets) > 0 && done.Status.Targets[0].InjectedAt != nil {
		t.Errorf("%s: %+v", message, done.Status.Targets)
	}
}

// onClass has the claims of a StatefulSet be of a storage class.
func onClass(name string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		templates, found, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
		if !found {
			return
		}
		for _, template := range templates {
			_ = unstructured.SetNestedField(template.(map[string]any), name, "spec", "storageClassName")
		}
		_ = unstructured.SetNestedSlice(object.Object, templates, "spec", "volumeClaimTemplates")
	}
}

// writes writes to Redis twenty times a second until its result is asked for: when that succeeded, and how it was
// refused.
func (n *namespace) writes() func() (succeeded []time.Time, refusals []string) {
	ctx, cancel := context.WithTimeout(n.Context(), 15*time.Minute)
	c := n.redis()
	var succeeded []time.Time
	var refusals []string
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if err := c.Set(ctx, "own", "x", 0).Err(); err == nil {
				succeeded = append(succeeded, time.Now())
			} else if ctx.Err() == nil {
				refusals = append(refusals, err.Error())
			}
			await.Pass(50*time.Millisecond, "the time to the next write")
		}
	})
	return func() ([]time.Time, []string) {
		cancel()
		done.Wait()
		return succeeded, refusals
	}
}

package announce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// noted counts events by the kind of their object, and keeps the last note of each.
type noted struct {
	count map[string]int
	note  map[string]string
}

func (n noted) Eventf(regarding, _ runtime.Object, _, _, _, note string, args ...any) {
	kind := "RedisFault"
	if object, is := regarding.(*corev1.ObjectReference); is {
		kind = object.Kind
	}
	n.count[kind]++
	n.note[kind] = fmt.Sprintf(note, args...)
}

// A fault on a thousand pods writes a bounded number of events, and says so; the pods beyond that have none later
// either.
func TestEventsAreBounded(t *testing.T) {
	now := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	before := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", UID: "u"},
		Spec:       v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultNodeLoss}},
	}
	before.Status.StartTime = &now
	for i := range 1000 {
		before.Status.Targets = append(before.Status.Targets, v1alpha1.FaultTarget{
			Pod:  fmt.Sprintf("redis-%d", i),
			UID:  fmt.Sprint(i),
			Node: fmt.Sprintf("node-%d", i%100),
		})
	}
	injected := before.DeepCopy()
	injected.Status.InjectedAt = &now
	for i := range injected.Status.Targets {
		injected.Status.Targets[i].InjectedAt = &now
	}
	n := noted{map[string]int{}, map[string]string{}}
	r := Announcer{Recorder: n}
	r.Emit(t.Context(), &Change{
		Before: before,
		After:  injected,
		Traits: contract.Traits{Taints: true, Lasts: time.Minute},
	})
	if n.count["Pod"] != podsWithEvents || n.count["Node"] != workloadsWithEvents ||
		n.count["RedisFault"] > podsWithEvents {
		t.Errorf("%v", n.count)
	}
	if want := "and 995 more pods, of which the first 50 have an event"; !strings.Contains(n.note["Node"], want) {
		t.Errorf("%q, want %q in it", n.note["Node"], want)
	}
	r.Emit(t.Context(), &Change{
		Before: injected.DeepCopy(),
		After:  injected,
		Traits: contract.Traits{Taints: true, Lasts: time.Minute},
	})
	if n.count["Pod"] != podsWithEvents || n.count["Node"] != workloadsWithEvents {
		t.Errorf("again for the same: %v", n.count)
	}
}

// A revert that is abandoned has an event on the fault with the command, wherever its pod is in the record.
func TestEventOfAnAbandonedRevert(t *testing.T) {
	before := &v1alpha1.RedisFault{}
	for i := range 100 {
		before.Status.Targets = append(before.Status.Targets, v1alpha1.FaultTarget{
			Pod: fmt.Sprintf("redis-%d", i),
			UID: fmt.Sprint(i),
		})
	}
	abandoned := before.DeepCopy()
	last := &abandoned.Status.Targets[99]
	last.RevertAbandoned, last.ManualRevertCommand = true, "redis-cli CONFIG SET hz 10"
	n := noted{map[string]int{}, map[string]string{}}
	r := Announcer{Recorder: n}
	r.Emit(t.Context(), &Change{Before: before, After: abandoned})
	if n.count["RedisFault"] != 1 || !strings.Contains(n.note["RedisFault"], "pod redis-99") ||
		!strings.Contains(n.note["RedisFault"], last.ManualRevertCommand) {
		t.Errorf("%v %v", n.count, n.note)
	}
}

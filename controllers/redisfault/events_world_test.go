package redisfault_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// eventsOn are the types, reasons and notes of the events about an object whose related object is a fault, by time.
func eventsOn(p *operatortest.Place, kind, name string, uid types.UID, fault *v1alpha1.RedisFault) []string {
	p.T.Helper()
	var all eventsv1.EventList
	if err := p.Client.List(context.Background(), &all); err != nil {
		p.T.Fatal(err)
	}
	slices.SortFunc(all.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var found []string
	for _, e := range all.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name && e.Regarding.UID == uid && e.Related != nil &&
			e.Related.Kind == "RedisFault" && e.Related.UID == fault.UID {
			found = append(found, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
			if e.Series != nil {
				found = append(found, fmt.Sprintf("%d times", e.Series.Count))
			}
		}
	}
	return found
}

// sameEvents compares events with the prefixes that are wanted.
func sameEvents(t *testing.T, on string, got, want []string) {
	t.Helper()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("events on %s:\n%s\nwant\n%s", on, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a fault hits has events with the fault's name, each once, although the operator is restarted while the fault is
// active; also if it is deleted.
func TestEventsOnWhatIsHit(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "redis", UID: "the-set"},
			Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(1))},
		}
		w.Create(set)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: operatortest.RedisName}}
		w.Read(pod)
		w.CreateLoad(operatortest.LongRun)
		w.Create(operatortest.HzFor("slow", "50", time.Minute))
		w.FaultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		w.Operator.Stop()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		slow := w.FaultEnds("slow", 5*time.Minute)
		sameEvents(t, "the pod", eventsOn(w.Place, "Pod", operatortest.RedisName, pod.UID, slow), []string{
			"Warning FaultInjected: RedisFault " + w.Namespace +
				"/slow: Config on this primary, for 1m, under the load of RedisLoadTest run",
			"Normal FaultReverted: RedisFault " + w.Namespace + "/slow: Config on this primary was reverted 1m",
		})
		sameEvents(t, "the StatefulSet", eventsOn(w.Place, "StatefulSet", "redis", set.UID, slow), []string{
			"Warning FaultInjected: RedisFault " + w.Namespace + "/slow: Config on redis-0, for 1m",
			"Normal FaultReverted: RedisFault " + w.Namespace + "/slow: Config on redis-0 was reverted 1m",
		})

		w.Create(operatortest.HzFor("deleted", "60", time.Hour))
		deleted := w.FaultHasReason("deleted", time.Minute, v1alpha1.ReasonActive)
		time.Sleep(5 * time.Second)
		w.MustChange(w.Client.Delete(t.Context(), deleted))
		w.Until("the fault is gone", time.Minute,
			func() bool { return !w.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}}) },
			func() string { return "" })
		sameEvents(t, "the pod of the deleted fault", eventsOn(w.Place, "Pod", operatortest.RedisName, pod.UID,
			deleted), []string{"Warning FaultInjected", "Normal FaultReverted"})
	})
}

// A fault that cannot be reverted says so where people look.
func TestEventsOfAFaultThatStays(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: operatortest.RedisName}}
		w.Read(pod)
		w.CreateLoad(operatortest.LongRun)
		w.Create(operatortest.HzFor("stuck", "50", 10*time.Second))
		w.FaultHasReason("stuck", time.Minute, v1alpha1.ReasonActive)
		w.Redis.Silence()
		stuck := w.FaultHasReason("stuck", time.Minute, v1alpha1.ReasonReverting)
		time.Sleep(20 * time.Second)
		w.MustChange(w.Client.Delete(t.Context(), stuck))
		w.Until("the fault is gone", 2*time.Minute,
			func() bool { return !w.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "stuck"}}) },
			func() string { return "" })
		sameEvents(t, "the pod", eventsOn(w.Place, "Pod", operatortest.RedisName, pod.UID, stuck), []string{
			"Warning FaultInjected", "Warning FaultOverstayed: RedisFault " + w.Namespace +
				"/stuck: Config on this primary has stayed for longer than asked, by ",
			"Warning FaultRevertFailed: RedisFault " + w.Namespace + "/stuck: Config on this primary could not be reverted: ",
		})
		w.Redis.Resume()
	})
}

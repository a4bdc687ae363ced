package fault

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// brokenTarget is an injector whose target an earlier process has broken.
type brokenTarget struct{ *stubborn }

func (brokenTarget) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) { return true, nil }

// A fault that gives way reverts first what a process may have prepared that has ended, and keeps its record until then. It does not give way if that process
// has broken a target: its record is the only one of that.
func TestGiveWay(t *testing.T) {
	waits := &problem.Problem{Reason: v1alpha1.ReasonWaitingForPolicy, Message: "1 of 1 faults act"}
	for _, tc := range []struct {
		name         string
		injector     contract.Injector
		goes, leaves bool
	}{
		{"nothing is prepared", &stubborn{answers: []answer{done}}, false, true},
		{"a cordon cannot be reverted now", &stubborn{answers: []answer{refusal}}, false, false},
		{"a cordon is being reverted", &stubborn{answers: []answer{{progress: contract.Underway("the node is uncordoned")}}}, false, false},
		{"a target is broken", brokenTarget{&stubborn{answers: []answer{done}}}, true, false},
	} {
		r, now := &Reconciler{}, metav1.NewMicroTime(time.Now())
		s := &scope{fault: &v1alpha1.RedisFault{}, injector: tc.injector, seen: lifecycle.Fault{Recorded: true}}
		s.fault.Status = v1alpha1.RedisFaultStatus{StartTime: &now, Targets: []v1alpha1.FaultTarget{{Pod: "redis-0"}}, Holding: new(true)}
		o, goes := r.giveWay(t.Context(), s, func() *problem.Problem { return waits })
		if goes != tc.goes || o.ended || o.err != nil || (o.problem != nil) != tc.leaves || (s.fault.Status.StartTime == nil) != tc.leaves || (s.holds(false) == nil) != tc.leaves {
			t.Errorf("%s: %v, %+v, %+v", tc.name, goes, o, s.fault.Status)
		}
		if b, is := tc.injector.(brokenTarget); is && len(b.reverts) > 0 {
			t.Errorf("%s: it was reverted %d times", tc.name, len(b.reverts))
		}
	}
}

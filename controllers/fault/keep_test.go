package fault

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
)

func TestKeepReachesEveryTarget(t *testing.T) {
	refused := errors.New("refused")
	injector := &stepwise{refuse: refused}
	f := &v1alpha1.RedisFault{}
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "a"}, {Pod: "b"}}
	s := &scope{fault: f, injector: injector}
	if err := s.keep(t.Context()); !errors.Is(err, refused) || len(injector.kept) != 2 {
		t.Errorf("kept %v (%v)", injector.kept, err)
	}
	s.injector = fault.Unknown{}
	if err := s.keep(t.Context()); err != nil {
		t.Errorf("a fault that needs no renewal: %v", err)
	}
}

// The timeline skips replacements that a fault deletes at once, except the last one.
func TestTimelineSkipsDeletedReplacements(t *testing.T) {
	f := &v1alpha1.RedisFault{}
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u0"}}
	s := &scope{fault: f, traits: contract.Traits{EndsServer: true}, pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "u0"}}, {ObjectMeta: metav1.ObjectMeta{UID: "u1"}}}}
	for _, tc := range []struct {
		kept, reverted bool
		want           int
	}{{false, false, 2}, {true, false, 1}, {true, true, 2}} {
		s.seen.Kept, s.seen.RevertedAll = tc.kept, tc.reverted
		if got := s.followedPods(); len(got) != tc.want || string(got[0].UID) != "u0" {
			t.Errorf("%+v: follows %d pods", tc, len(got))
		}
	}
	if len(s.pods) != 2 {
		t.Error("the scope's own pods were changed")
	}
}

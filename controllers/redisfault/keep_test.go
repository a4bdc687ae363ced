package redisfault

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func TestKeepReachesEveryTarget(t *testing.T) {
	refused := errors.New("refused")
	injector := &stepwise{refuse: refused}
	f := &v1alpha1.RedisFault{}
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "a"}, {Pod: "b"}}
	s, r := &scope.Fault{Fault: f, Injector: injector}, &Reconciler{Term: faultrun.NewRegistry(nil).NewTerm()}
	if err := r.keep(t.Context(), s); !errors.Is(err, refused) || len(injector.kept) != 2 {
		t.Errorf("kept %v (%v)", injector.kept, err)
	}
	s.Injector = fault.Unknown{}
	if err := r.keep(t.Context(), s); err != nil {
		t.Errorf("a fault that needs no renewal: %v", err)
	}
}

// standIn is a fault of which a pod has taken the place of the target.
type standIn struct {
	stepwise
	due corev1.Pod
}

func (s *standIn) Due(context.Context, []v1alpha1.FaultTarget) ([]corev1.Pod, error) {
	return []corev1.Pod{s.due}, nil
}

// A replacement that has come to serve while the operator was away is not killed where it is the last copy by now.
func TestKeepSparesTheLastCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		phase   corev1.PodPhase
		loads   bool // the other copy, its data; else it is in sync
		allowed []v1alpha1.Allowance
		kept    bool
	}{
		"it has just appeared": {
			phase: corev1.PodPending,
			loads: true,
			kept:  true,
		},
		"the other one is in sync": {
			phase: corev1.PodRunning,
			kept:  true,
		},
		"the other one loads": {phase: corev1.PodRunning, loads: true},
		"that is allowed": {
			phase:   corev1.PodRunning,
			loads:   true,
			allowed: []v1alpha1.Allowance{v1alpha1.AllowAllCopies},
			kept:    true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			replacement := w.Pod("redis-0", "new", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
				p.Status.Phase = tc.phase
			})
			w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
			w.Servers.Change("10.0.0.2:6379", func(s *memredis.State) { s.Loading = tc.loads })
			none := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).
				WithIndex(&v1alpha1.RedisFault{}, claims.Holding, func(client.Object) []string { return []string{"true"} }).Build()
			f := &v1alpha1.RedisFault{
				ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "down", UID: "down"},
				Spec:       v1alpha1.RedisFaultSpec{Allow: tc.allowed},
			}
			f.Status.Targets = []v1alpha1.FaultTarget{
				{
					Pod:        "redis-0",
					UID:        "u0",
					Role:       v1alpha1.RolePrimary,
					InjectedAt: &metav1.MicroTime{},
					Copies:     []string{"redis-1"},
				},
			}
			injector := &standIn{due: *replacement}
			s := &scope.Fault{
				Fault:    f,
				Injector: injector,
				Deps:     faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})),
				Traits:   contract.Traits{Silences: true, EndsServer: true, Lasts: time.Minute},
			}
			r := &Reconciler{Client: none, APIReader: none, Clock: testingclock.NewFakePassiveClock(time.Now())}
			err := r.keep(t.Context(), s)
			if refused, is := errors.AsType[*problem.Problem](err); is == tc.kept ||
				is && refused.Reason != v1alpha1.ReasonBlastRadius {
				t.Errorf("%v", err)
			}
			if kept := len(injector.kept) > 0; kept != tc.kept {
				t.Errorf("it was ended: %t", kept)
			}
		})
	}
}

// The timeline skips replacements that a fault deletes at once, except the last one.
func TestTimelineSkipsDeletedReplacements(t *testing.T) {
	f := &v1alpha1.RedisFault{}
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u0"}}
	s := &scope.Fault{
		Fault:  f,
		Traits: contract.Traits{EndsServer: true},
		FoundPods: scope.FoundPods{Pods: []corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{UID: "u0"}}, {ObjectMeta: metav1.ObjectMeta{UID: "u1"}},
		}},
	}
	for _, tc := range []struct {
		kept, reverted bool
		want           int
	}{{false, false, 2}, {true, false, 1}, {true, true, 2}} {
		s.Seen.Kept, s.Seen.RevertedAll = tc.kept, tc.reverted
		if got := figures.FollowedPods(s); len(got) != tc.want || string(got[0].UID) != "u0" {
			t.Errorf("%+v: follows %d pods", tc, len(got))
		}
	}
	if len(s.Pods) != 2 {
		t.Error("the scope's own pods were changed")
	}
}

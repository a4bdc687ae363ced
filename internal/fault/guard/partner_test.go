package guard

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// kills ends a server at once, and replaces its pod.
var kills = contract.Traits{Silences: true, EndsServer: true, NewPod: true, Abrupt: true}

func primaries() *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary}}
}

// A primary that keeps nothing on its disk is not ended because a fault beside which that would happen keeps it from
// answering: its replica would copy the empty data set.
func TestDataOfASilencedPrimary(t *testing.T) {
	hung := Hit{
		Pod: "master-0", UID: "m0", RunID: "r", Address: masterAt, Fault: "hang", Beside: true,
		Role: v1alpha1.RolePrimary, Copies: []string{"replicas-0"},
	}
	for name, tc := range map[string]struct {
		others  []Hit
		allow   []v1alpha1.Allowance
		refused string
	}{
		"alone": {nil, nil, "comes back without data"},
		"beside its hang": {
			[]Hit{hung}, []v1alpha1.Allowance{v1alpha1.AllowAllCopies}, "while RedisFault hang keeps it from answering",
		},
		"beside its hang, with its replica elsewhere": {
			[]Hit{hung}, []v1alpha1.Allowance{v1alpha1.AllowDataLoss}, "whether replicas-0 is in sync is not known",
		},
		"where allowed": {[]Hit{hung}, []v1alpha1.Allowance{v1alpha1.AllowDataLoss, v1alpha1.AllowAllCopies}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := apart(t, "replicas-0")
			w.Servers.Change(masterAt, func(s *memredis.State) { s.Appends, s.Saved = false, false })
			if tc.others != nil {
				w.Servers.Kill(masterAt)
			}
			spec := primaries()
			spec.Allow = tc.allow
			_, err := Select(t.Context(), of(w, "master"), spec, kills, nil, tc.others)
			problemSays(t, err, tc.refused)
		})
	}
}

func problemSays(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if p := faulttest.ProblemOf(t, err); !strings.Contains(p.Message, want) {
		t.Errorf("%q, want one that contains %q", p.Message, want)
	}
}

// The process that a fault beside which another one acts has hit is not taken for the one that runs now.
func TestSilencedServerThatWasRestarted(t *testing.T) {
	w := apart(t, "replicas-0")
	pod := w.PodNamed("master-0")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "redis", RestartCount: 1}}
	faulttest.Must(t, w.Cluster.Status().Update(t.Context(), pod))
	w.Servers.Kill(masterAt)
	for restarts, refused := range map[int32]string{0: "did not answer", 1: ""} {
		spec := primaries()
		spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowDataLoss, v1alpha1.AllowAllCopies}
		_, err := Select(t.Context(), of(w, "master"), spec, kills, nil, []Hit{{
			Pod: "master-0", UID: "m0", RunID: "r", Address: masterAt, Fault: "crash", Beside: true, Restarts: restarts,
			Role: v1alpha1.RolePrimary, Copies: []string{"replicas-0"},
		}})
		problemSays(t, err, refused)
	}
}

// The copies that a fault has removed are missed, whoever asks: a setting of the load, a fault that is to act beside it,
// and one of another workload.
func TestCopiesThatWereRemoved(t *testing.T) {
	now := metav1.NowMicro()
	for name, change := range map[string]func(scale, judged *v1alpha1.RedisFault){
		"by another fault": func(*v1alpha1.RedisFault, *v1alpha1.RedisFault) {},
		"by one beside it": func(_, judged *v1alpha1.RedisFault) { judged.Spec.Beside = []string{"scale"} },
		"by a setting": func(scale, judged *v1alpha1.RedisFault) {
			scale.Spec.Setting, scale.Spec.LoadTestRef = true, &v1alpha1.LoadTestReference{Name: "run"}
			judged.Spec.LoadTestRef = scale.Spec.LoadTestRef
		},
	} {
		t.Run(name, func(t *testing.T) {
			scale, judged := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "scale"}}, &v1alpha1.RedisFault{}
			scale.Spec.Action.ReplicaScale = &v1alpha1.ReplicaScale{By: -1}
			scale.Status.Holding = new(true)
			scale.Status.Targets = []v1alpha1.FaultTarget{
				{Pod: "master-0", InjectedAt: &now, ActiveAt: &now, Copies: []string{"replicas-0"}},
			}
			change(scale, judged)
			hits := HitsOf(scale, contract.Traits{Lasts: 1, Whole: true}, judged, now.Time)
			_, err := Select(t.Context(), of(apart(t), "master"), primaries(), kills, nil, hits)
			refusedFor(t, err, "RedisFault scale has removed replicas-0")
			if _, err := Select(t.Context(), of(apart(t, "replicas-0", "replicas-1"), "replicas"),
				&v1alpha1.RedisFaultSpec{}, kills, nil, hits); err != nil {
				t.Errorf("of three, all there: %v", err)
			}
		})
	}
}

// A primary of something else that a fault holds is no reason to take replicas without a primary for copies.
func TestLostPrimaryOfAnotherRedis(t *testing.T) {
	for name, tc := range map[string]struct {
		others  []Hit
		refused string
	}{
		"alone": {nil, "is not connected to its primary"},
		"beside a fault on another Redis": {
			[]Hit{{Pod: "cache-0", Fault: "hang", Beside: true, Role: v1alpha1.RolePrimary, Address: "10.9.9.9:6379"}},
			"is not connected to its primary",
		},
		"beside one on its primary": {
			[]Hit{{Pod: "master-0", Fault: "kill", Beside: true, Role: v1alpha1.RolePrimary, Copies: []string{"replicas-1"}}}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := apart(t, "replicas-0", "replicas-1")
			faulttest.Must(t, w.Cluster.Delete(t.Context(), w.PodNamed("master-0")))
			w.Servers.Kill(masterAt)
			for _, address := range []string{replicasAt, "10.0.0.3:6379"} {
				w.Servers.Change(address, func(s *memredis.State) { s.Link = memredis.LinkLost })
			}
			spec := &v1alpha1.RedisFaultSpec{
				Select: v1alpha1.FaultSelector{Names: []string{"replicas-0"}, Role: v1alpha1.RoleAny},
			}
			_, err := Select(t.Context(), of(w, "replicas"), spec, contract.Traits{Silences: true, EndsServer: true}, nil,
				tc.others)
			refusedFor(t, err, tc.refused)
		})
	}
}

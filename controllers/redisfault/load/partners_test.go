package load

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// A fault acts beside others from when the last of them is complete on all targets, until the first of them is reverted
// or, where nothing stays, has settled.
func TestObservePartners(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds int) *metav1.MicroTime {
		return &metav1.MicroTime{Time: start.Add(time.Duration(seconds) * time.Second)}
	}
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "load"}}
	test.Status.StartTime = &metav1.MicroTime{Time: start}
	target := func(pod string, injected, active *metav1.MicroTime) v1alpha1.FaultTarget {
		return v1alpha1.FaultTarget{Pod: pod, InjectedAt: injected, ActiveAt: active}
	}
	fault := func(name string, typ v1alpha1.FaultType, change func(*v1alpha1.RedisFault)) v1alpha1.RedisFault {
		f := v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
		f.Spec.Action.Type = typ
		f.Status.LoadTest, f.Status.StartTime, f.Status.LoadStartTime = "load", at(10), test.Status.StartTime
		f.Status.InjectedAt = at(11)
		change(&f)
		return f
	}
	acting := func(f *v1alpha1.RedisFault) {
		f.Status.Targets = []v1alpha1.FaultTarget{target("a", at(11), at(12)), target("b", at(11), at(14))}
	}
	const own = "own"
	for name, tc := range map[string]struct {
		all     []v1alpha1.RedisFault
		beside  []string
		since   int    // in seconds from the start; 0 = not all act
		missing string // "" = none
		notYet  string
		tooLate string
	}{
		"none": {all: []v1alpha1.RedisFault{fault("other", v1alpha1.FaultHang, acting)}},
		"one that acts": {
			all:    []v1alpha1.RedisFault{fault("one", v1alpha1.FaultHang, acting)},
			beside: []string{"one"}, since: 14,
		},
		"one that leaves nothing": {
			all: []v1alpha1.RedisFault{fault("one", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				acting(f)
				f.Status.RevertedAt = at(14) // at once
			})},
			beside: []string{"one"}, since: 14,
		},
		"such a one that has settled": {
			all: []v1alpha1.RedisFault{fault("one", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				acting(f)
				f.Status.SettledTime = at(20)
			})},
			beside: []string{"one"}, tooLate: "RedisFault one is over",
		},
		"one with a target to go": {
			all: []v1alpha1.RedisFault{fault("one", v1alpha1.FaultHang, func(f *v1alpha1.RedisFault) {
				f.Status.Targets = []v1alpha1.FaultTarget{target("a", at(11), at(12)), target("b", at(11), nil)}
			})},
			beside: []string{"one"}, notYet: "RedisFault one does not act yet",
		},
		"one that waits": {
			all:    []v1alpha1.RedisFault{fault("one", v1alpha1.FaultHang, func(*v1alpha1.RedisFault) {})},
			beside: []string{"one"}, notYet: "RedisFault one does not act yet",
		},
		"one that is being reverted": {
			all: []v1alpha1.RedisFault{fault("one", v1alpha1.FaultHang, func(f *v1alpha1.RedisFault) {
				acting(f)
				f.Status.RevertingSince = at(15)
			})},
			beside: []string{"one"}, tooLate: "RedisFault one is over",
		},
		"one that failed": {
			all: []v1alpha1.RedisFault{fault("one", v1alpha1.FaultHang, func(f *v1alpha1.RedisFault) {
				f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue}}
			})},
			beside: []string{"one"}, tooLate: "RedisFault one is over",
		},
		"one that something else broke": {
			all:    []v1alpha1.RedisFault{fault("one", v1alpha1.FaultExternal, func(*v1alpha1.RedisFault) {})},
			beside: []string{"one"}, since: 11,
		},
		"two, of which one waits": {
			all: []v1alpha1.RedisFault{
				fault("one", v1alpha1.FaultHang, acting),
				fault("two", v1alpha1.FaultHang, func(*v1alpha1.RedisFault) {}),
			},
			beside: []string{"one", "two"}, notYet: "RedisFault two does not act yet",
		},
		"two, of which one is missing": {
			all:    []v1alpha1.RedisFault{fault("one", v1alpha1.FaultHang, acting)},
			beside: []string{"one", "two"}, missing: "there is no RedisFault two",
		},
		"one that names it by way of another": {
			all: []v1alpha1.RedisFault{
				fault("one", v1alpha1.FaultHang, func(f *v1alpha1.RedisFault) { f.Spec.Beside = []string{"two", "one"} }),
				fault("two", v1alpha1.FaultHang, func(f *v1alpha1.RedisFault) { f.Spec.Beside = []string{own} }),
			},
			beside: []string{"one"}, tooLate: "RedisFault one is to act beside this one, too",
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := fake.NewClientBuilder().WithScheme(apitest.Scheme(t))
			for i := range tc.all {
				made.WithObjects(&tc.all[i])
			}
			s := &scope.Fault{
				Test:  test,
				Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: own, UID: own}},
			}
			s.Fault.Spec.Beside = tc.beside
			if err := (&Observer{Client: made.Build()}).ObserveQuiet(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			got, want := s.Seen.Partners, time.Duration(tc.since)*time.Second
			if tc.since > 0 && !got.ActSince.Equal(start.Add(want)) || tc.since == 0 && !got.ActSince.IsZero() ||
				got.Missing != tc.missing || got.NotYet != tc.notYet || !strings.HasPrefix(got.TooLate, tc.tooLate) ||
				tc.tooLate == "" && got.TooLate != "" {
				t.Errorf("%+v", got)
			}
			if tc.tooLate == "" && s.QuietFrom != want {
				t.Errorf("the baseline begins at %s, want %s", s.QuietFrom, want)
			}
			if tc.since > 0 && s.UnderWay != "" {
				t.Errorf("it waits for %s", s.UnderWay)
			}
		})
	}
}

// What a fault was measured against stays when those that it acted beside are gone.
func TestBaselineBesideStays(t *testing.T) {
	start := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s := &scope.Fault{
		Test:  &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "load"}},
		Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own", UID: "own"}},
	}
	s.Test.Status.StartTime = &start
	s.Fault.Spec.Beside = []string{"gone"}
	s.Fault.Status.BesideSince = new(metav1.NewMicroTime(start.Add(40 * time.Second)))
	r := &Observer{Client: fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build()}
	if err := r.ObserveQuiet(t.Context(), s); err != nil || s.QuietFrom != 40*time.Second {
		t.Errorf("the baseline begins at %s, %v", s.QuietFrom, err)
	}
}

package load

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// A baseline begins after the warm-up and after every earlier fault on the same load has settled.
func TestObserveQuiet(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: start.Add(d)} }
	warmUp := 5 * time.Second
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "load"}}
	test.Spec.Load.WarmUp = &metav1.Duration{Duration: warmUp}
	test.Status.StartTime = &metav1.MicroTime{Time: start}
	type other struct {
		load               string
		injected, complete *metav1.MicroTime
		apart              bool // it takes the operator of the Redis away
	}
	cases := map[string]struct {
		injected *metav1.MicroTime // of the fault itself
		others   []other
		want     time.Duration
	}{
		"alone": {nil, nil, warmUp},
		"after another": {
			nil,
			[]other{{"load", after(10 * time.Second), after(30 * time.Second), false}},
			30 * time.Second,
		},
		"after two": {
			nil,
			[]other{
				{"load", after(40 * time.Second), after(60 * time.Second), false},
				{"load", after(10 * time.Second), after(30 * time.Second), false},
			},
			60 * time.Second,
		},
		"injected after another was over": {
			after(45 * time.Second),
			[]other{{"load", after(10 * time.Second), after(30 * time.Second), false}},
			30 * time.Second,
		},
		"injected before another was": {
			after(20 * time.Second),
			[]other{{"load", after(10 * time.Second), after(30 * time.Second), false}},
			warmUp,
		},
		"another still under way": {nil, []other{{"load", after(10 * time.Second), nil, false}}, warmUp},
		"another never injected":  {nil, []other{{"load", nil, after(30 * time.Second), false}}, warmUp},
		"an operator that was away": {
			nil, []other{{"load", after(10 * time.Second), after(30 * time.Second), true}}, warmUp,
		},
		"an operator that is away":  {nil, []other{{"load", after(10 * time.Second), nil, true}}, warmUp},
		"another on another load":   {nil, []other{{"else", after(10 * time.Second), after(30 * time.Second), false}}, warmUp},
		"another of an earlier run": {nil, []other{{"load", after(-time.Hour), after(-50 * time.Minute), false}}, warmUp},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := fake.NewClientBuilder().WithScheme(apitest.Scheme(t))
			for i, o := range c.others {
				f := &v1alpha1.RedisFault{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(rune('a' + i)), UID: types.UID(rune('a' + i))},
				}
				f.Status.LoadTest, f.Status.InjectedAt, f.Status.CompletionTime = o.load, o.injected, o.complete
				f.Status.LoadStartTime = test.Status.StartTime
				if o.apart {
					f.Spec.Action.Type = v1alpha1.FaultOperatorOutage
				}
				if o.injected != nil && o.injected.Time.Before(start) {
					f.Status.LoadStartTime = after(-2 * time.Hour)
				}
				if o.complete == nil || o.injected != nil {
					f.Status.StartTime = o.injected
				}
				cluster.WithObjects(f)
			}
			s := &scope.Fault{
				Test:  test,
				Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own", UID: "own"}},
			}
			s.Fault.Status.InjectedAt = c.injected
			r := &Observer{Client: cluster.Build()}
			if err := r.ObserveQuiet(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if under := slices.ContainsFunc(c.others, func(o other) bool {
				return o.load == "load" && o.complete == nil && !o.apart
			}); under != (s.UnderWay != "") {
				t.Errorf("under way: %q, want %v", s.UnderWay, under)
			}
			if s.QuietFrom != c.want {
				t.Errorf("quiet from %s, want %s", s.QuietFrom, c.want)
			}
			if want := start.Add(c.want); !s.Seen.WarmUntil.Equal(want) {
				t.Errorf("the wait for steadiness begins at %s, want %s", s.Seen.WarmUntil, want)
			}
		})
	}
}

// The baseline of a fault in a benchmark whose tests run one after the other begins with the test that runs at the
// injection.
func TestBaselineBeginsWithTheTest(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "load"}}
	test.Spec.Load = v1alpha1.LoadShape{
		Users:    new(int32(5)),
		WarmUp:   &metav1.Duration{Duration: 10 * time.Second},
		Duration: &metav1.Duration{Duration: 120 * time.Second},
	}
	test.Spec.Workload.Benchmark = &v1alpha1.BenchmarkWorkload{
		Tests: []v1alpha1.BenchmarkTest{"set", "get"},
		Order: v1alpha1.BenchmarkSequential,
	}
	test.Status.StartTime = &metav1.MicroTime{Time: start}
	for injected, want := range map[time.Duration]time.Duration{
		50 * time.Second:  10 * time.Second,
		100 * time.Second: 70 * time.Second,
	} {
		s := &scope.Fault{
			Test:  test,
			Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "own", UID: "own"}},
		}
		s.Fault.Status.InjectedAt = &metav1.MicroTime{Time: start.Add(injected)}
		r := &Observer{Client: fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).Build()}
		if err := r.ObserveQuiet(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if s.QuietFrom != want {
			t.Errorf("of a fault after %s the baseline begins after %s, want %s", injected, s.QuietFrom, want)
		}
	}
}

package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// What other faults hit is not spared, and the refusal names them.
func TestOtherFaultsAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		others  []Hit
		refused string
	}{
		"none":       {nil, ""},
		"one of two": {[]Hit{{Pod: "redis-1", Fault: "other"}}, ""},
		"both": {
			[]Hit{{Pod: "redis-1", Fault: "other"}, {Pod: "redis-2", Fault: "third"}},
			"RedisFault other holds redis-1; RedisFault third holds redis-2",
		},
		"the target":  {[]Hit{{Pod: "redis-0", Fault: "other"}}, ""},
		"another pod": {[]Hit{{Pod: "api-0", Fault: "other"}}, ""},
		"a Pending pod": {
			[]Hit{{Pod: "redis-1", Fault: "other"}, {Pod: "redis-2", Fault: "other"}, {Pod: "redis-3", Fault: "keep-down"}},
			"RedisFault keep-down holds redis-3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			for i, role := range []topology.Role{topology.Primary, topology.Replica, topology.Replica} {
				w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
			}
			w.Pod("redis-3", "u3", "", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
			_, err := Select(t.Context(), on(w), killing(), contract.Traits{Silences: true}, nil, tc.others)
			refusedFor(t, err, tc.refused)
		})
	}
}

// A fault that waits for a copy between two targets may select all of them: at each it has the others. One that does not
// wait, or that breaks all at once, may not.
func TestAllCopiesOneAfterTheOther(t *testing.T) {
	const last = "the last copy in sync"
	for name, tc := range map[string]struct {
		traits  contract.Traits
		others  []Hit
		refused string
	}{
		"waits":                 {contract.Traits{Silences: true, Waits: true, Together: true}, nil, ""},
		"does not wait":         {contract.Traits{Silences: true, Together: true}, nil, last},
		"the other one is held": {contract.Traits{Silences: true, Waits: true}, []Hit{{Pod: "redis-1", Fault: "other"}}, last},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			for i, role := range []topology.Role{topology.Primary, topology.Replica} {
				w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
			}
			spec := killing()
			spec.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
			selected, err := Select(t.Context(), on(w), spec, tc.traits, nil, tc.others)
			refusedFor(t, err, tc.refused)
			if tc.refused == "" && len(selected.Targets) != 2 {
				t.Errorf("selected %+v", selected.Targets)
			}
		})
	}
}

// Sentinels of other faults are lost, too.
func TestSentinelsOfOtherFaultsAreCounted(t *testing.T) {
	w := faulttest.NewWorld(t)
	for i := range 3 {
		w.Pod(fmt.Sprintf("sentinel-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), topology.Sentinel, nil)
	}
	spec := &v1alpha1.RedisFaultSpec{}
	if _, err := Select(t.Context(), on(w), spec, contract.Traits{Silences: true}, nil, nil); err != nil {
		t.Errorf("one of three: %v", err)
	}
	_, err := Select(t.Context(), on(w), spec, contract.Traits{Silences: true}, nil, []Hit{
		{Pod: "sentinel-2", Fault: "other"},
	})
	if p := faulttest.ProblemOf(t,
		err); !strings.Contains(p.Message,
		"2 of 3 sentinels and leave 1, too few to elect a primary: RedisFault other holds sentinel-2; spec.allow: [MajorityOfSentinels]") {
		t.Errorf("%+v", p)
	}
}

// Before each target everything is asked again: what has changed since the choice is refused.
func TestCheck(t *testing.T) {
	primaries := v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Mode: v1alpha1.SelectAll}
	anyTwo := v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectCount, Count: new(int32(2))}
	lasting := contract.Traits{Silences: true, Lasts: time.Minute}
	killed := contract.Traits{Silences: true, EndsServer: true}
	for name, tc := range map[string]struct {
		selector v1alpha1.FaultSelector
		traits   contract.Traits
		injected int // how many targets are hit already
		change   func(*faulttest.World)
		others   []Hit
		reason   string // "" = it may be hit
		text     string
	}{
		"nothing changed": {selector: primaries, traits: killed},
		"another primary": {
			selector: primaries,
			traits:   killed,
			change:   swapped,
			reason:   v1alpha1.ReasonNoTarget,
			text:     "redis-0 was selected as Primary and is Replica now",
		},
		"another primary, of what acts apart": {
			selector: primaries, traits: contract.Traits{Apart: true}, change: swapped,
		},
		"no answer": {selector: primaries, traits: killed, change: func(w *faulttest.World) {
			w.Servers.Kill("10.0.0.1:6379")
		}, reason: v1alpha1.ReasonNoTarget, text: "it did not answer"},
		"the last copy by now": {
			selector: primaries,
			traits:   killed,
			change:   loading("10.0.0.2:6379", "10.0.0.3:6379"),
			reason:   v1alpha1.ReasonBlastRadius,
			text:     "redis-1 loads its data; redis-2 loads its data",
		},
		"the namespace is protected": {
			selector: primaries,
			traits:   killed,
			change:   protected,
			reason:   v1alpha1.ReasonProtected,
			text:     faulttest.Namespace,
		},
		"another fault came": {
			selector: primaries,
			traits:   killed,
			others:   []Hit{{Pod: "redis-1", Fault: "other"}, {Pod: "redis-2", Fault: "other"}},
			reason:   v1alpha1.ReasonBlastRadius,
			text:     "RedisFault other holds redis-1",
		},
		"the pod is gone":               {selector: primaries, traits: killed, change: replaced},
		"the second of two":             {selector: anyTwo, traits: lasting, injected: 1},
		"the second, its primary ended": {selector: anyTwo, traits: killed, injected: 1, change: ended},
		"the second, the last copy": {
			selector: anyTwo,
			traits:   lasting,
			injected: 1,
			change:   loading("10.0.0.3:6379"),
			reason:   v1alpha1.ReasonBlastRadius,
			text:     "this fault has hit redis-0; redis-2 loads its data",
		},
		"the first is a copy again": {
			selector: anyTwo,
			traits:   killed,
			injected: 1,
			change:   func(w *faulttest.World) { swappedBack(w); loading("10.0.0.3:6379")(w) },
		},
		"it does not silence": {selector: primaries, change: loading("10.0.0.2:6379", "10.0.0.3:6379")},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: faulttest.Namespace}})
			for i, role := range []topology.Role{topology.Primary, topology.Replica, topology.Replica} {
				w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
			}
			spec := &v1alpha1.RedisFaultSpec{Select: tc.selector}
			targets, err := Choose(t.Context(), on(w), spec, tc.traits)
			faulttest.Must(t, err)
			for i := range tc.injected {
				targets[i].InjectedAt = new(metav1.NowMicro())
			}
			if tc.change != nil {
				tc.change(w)
			}
			err = Check(t.Context(), on(w), spec, tc.traits, &targets[tc.injected], targets, tc.others)
			if tc.reason == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if p := faulttest.ProblemOf(t, err); p.Reason != tc.reason || !strings.Contains(p.Message, tc.text) {
				t.Errorf("%s: %q, want %s with %q", p.Reason, p.Message, tc.reason, tc.text)
			}
		})
	}
}

// swapped is a failover from redis-0 to redis-1.
func swapped(w *faulttest.World) {
	w.Servers.Change("10.0.0.1:6379", func(s *memredis.State) { s.Primary = "10.0.0.2:6379" })
	w.Servers.Change("10.0.0.2:6379", func(s *memredis.State) { s.Primary = "" })
}

// swappedBack is what follows: the process of redis-0 is another one.
func swappedBack(w *faulttest.World) {
	swapped(w)
	w.Servers.Change("10.0.0.1:6379", func(s *memredis.State) { s.RunID = "another" })
}

func loading(addresses ...string) func(*faulttest.World) {
	return func(w *faulttest.World) {
		for _, address := range addresses {
			w.Servers.Change(address, func(s *memredis.State) { s.Loading = true })
		}
	}
}

func protected(w *faulttest.World) {
	faulttest.Must(w.T,
		w.Cluster.Update(w.T.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name:        faulttest.Namespace,
				Annotations: map[string]string{v1alpha1.AnnotationProtected: "true"},
			},
		}))
}

// replaced is another pod of the same name.
func replaced(w *faulttest.World) {
	faulttest.Must(w.T,
		w.Cluster.Delete(w.T.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis-0"},
		}))
	w.Pod("redis-0", "u9", "10.0.0.9", topology.Primary, nil)
}

// ended is the end of the primary: its replicas have lost their link, and nothing of their data.
func ended(w *faulttest.World) {
	w.Servers.Kill("10.0.0.1:6379")
	for _, address := range []string{"10.0.0.2:6379", "10.0.0.3:6379"} {
		w.Servers.Change(address, func(s *memredis.State) { s.Link = memredis.LinkLost })
	}
}

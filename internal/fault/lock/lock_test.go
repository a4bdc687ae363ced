package lock

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// claim is one on a pod of the StatefulSet redis, in the namespace shop.
func claim(name string, change func(*Claim)) Claim {
	c := Claim{
		Fault:     types.NamespacedName{Namespace: "shop", Name: name},
		UID:       types.UID(name),
		Since:     epoch,
		Pods:      []string{"redis-0"},
		Workloads: []string{"StatefulSet/redis"},
	}
	if change != nil {
		change(&c)
	}
	return c
}

func TestContested(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Claim)
		want   string
	}{
		{"the same pod", nil, "pod redis-0"},
		{"itself", func(c *Claim) { c.UID = "first" }, ""},
		{"another pod of the workload", func(c *Claim) { c.Pods = []string{"redis-1"} }, ""},
		{"one of several pods", func(c *Claim) { c.Pods = []string{"redis-2", "redis-0"} }, "pod redis-0"},
		{"the whole workload", func(c *Claim) { c.Pods, c.Whole = []string{"redis-1"}, true }, "StatefulSet/redis"},
		{"another whole workload", func(c *Claim) {
			c.Pods, c.Whole, c.Workloads = []string{"redis-1"}, true, []string{"StatefulSet/other"}
		}, ""},
		{"a pod of the same name elsewhere", func(c *Claim) { c.Fault.Namespace, c.Whole = "other", true }, ""},
		{"another node", func(c *Claim) { c.Fault.Namespace, c.Nodes = "other", []string{"node-2"} }, ""},
		{"the same node, from another namespace", func(c *Claim) {
			c.Fault.Namespace, c.Nodes = "other",
				[]string{"node-2", "node-1"}
		}, "node node-1"},
		{"the same Deployment, from another namespace", func(c *Claim) {
			c.Fault.Namespace, c.Deployment = "other", "shop/operator"
		}, "Deployment shop/operator"},
		{"another Deployment", func(c *Claim) { c.Fault.Namespace, c.Deployment = "other", "other/operator" }, ""},
	} {
		first, second := claim("first", func(c *Claim) {
			c.Nodes, c.Deployment = []string{"node-1"}, "shop/operator"
		}), claim("second", tc.change)
		if got := Contested(first, second); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if got := Contested(second, first); got != tc.want {
			t.Errorf("%s, the other way round: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// The replacements of two pods of a Deployment have no place of their own: two faults that keep some down would count
// each other's.
func TestKeepingDownInOneDeployment(t *testing.T) {
	of := func(name, pod, workload string, keeps bool) Claim {
		return claim(name, func(c *Claim) { c.Pods, c.Workloads, c.KeepsDown = []string{pod}, []string{workload}, keeps })
	}
	for _, tc := range []struct {
		workload     string
		first, other bool
		want         string
	}{
		{"ReplicaSet/cache", true, true, "ReplicaSet/cache"},
		{"ReplicaSet/cache", true, false, ""},
		{"StatefulSet/redis", true, true, ""},
	} {
		if got := Contested(of("first", "a", tc.workload, tc.first),
			of("other", "b", tc.workload, tc.other)); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
	f := &v1alpha1.RedisFault{}
	f.Spec.Action.Type, f.Spec.Duration, f.Status.Waiting = v1alpha1.FaultPodKill, &metav1.Duration{Duration: time.Minute},
		&v1alpha1.WaitingFault{}
	if c, waits := Waiting(f); !waits || !c.KeepsDown {
		t.Errorf("a fault that waits: %+v", c)
	}
}

// The first in the queue comes first, unless what it wants has nothing to do with the others.
func TestBlocker(t *testing.T) {
	later := func(c *Claim) { c.Since = epoch.Add(time.Second) }
	elsewhere := func(c *Claim) { c.Pods = []string{"redis-1"} }
	for _, tc := range []struct {
		name          string
		wanted        Claim
		held, waiting []Claim
		want          string
	}{
		{"nobody else", claim("b", nil), nil, nil, ""},
		{"held", claim("b", nil), []Claim{claim("c", elsewhere), claim("a", nil)}, nil, "a"},
		{"held since later", claim("b", nil), []Claim{claim("a", later)}, nil, "a"},
		{"another one waits for longer", claim("b", later), nil, []Claim{claim("a", nil)}, "a"},
		{"another one waits for less long", claim("b", nil), nil, []Claim{claim("a", later)}, ""},
		{"both since the same instant: by name", claim("b", nil), nil, []Claim{claim("a", nil), claim("b", nil)}, "a"},
		{"another one waits for something else", claim("b", later), nil, []Claim{claim("a", elsewhere)}, ""},
	} {
		other, on, blocked := Blocker(tc.wanted, tc.held, tc.waiting)
		if other.Fault.Name != tc.want || blocked != (tc.want != "") || blocked && on != "pod redis-0" {
			t.Errorf("%s: %s on %q, want %q", tc.name, other.Fault.Name, on, tc.want)
		}
	}
}

// Of two faults that were recorded at once exactly one yields; one that may have been injected never does.
func TestYields(t *testing.T) {
	for _, changeA := range []func(*Claim){
		nil,
		func(c *Claim) { c.Since = epoch.Add(time.Second) },
		func(c *Claim) { c.Since = epoch.Add(-time.Second) },
	} {
		a, b := claim("a", changeA), claim("b", nil)
		if Yields(a, b) == Yields(b, a) {
			t.Errorf("since %s and %s: both or none yield", a.Since, b.Since)
		}
		b.Attempted = true
		if !Yields(a, b) {
			t.Errorf("since %s: it does not yield to a fault that was injected", a.Since)
		}
	}
}

// A fault holds what it acts on from its record to its revert.
func TestHeldAndWaiting(t *testing.T) {
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "a"}}
	if _, held := Held(f, contract.Traits{}); held {
		t.Error("a fault without a record holds something")
	}
	if _, waits := Waiting(f); waits {
		t.Error("a fault waits that does not wait")
	}
	now := metav1.NewMicroTime(epoch)
	f.Status.Waiting = &v1alpha1.WaitingFault{For: "b", Since: now, Pods: []string{"redis-0"}, Whole: true}
	if c, waits := Waiting(f); !waits || !c.Whole || len(c.Pods) != 1 || !c.Since.Equal(epoch) {
		t.Errorf("waits %v for %+v", waits, c)
	}
	f.Status.StartTime, f.Status.Holding = &now, new(true)
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", Node: "node-1"}, {Pod: "redis-1", Node: "node-1"}}
	c, held := Held(f, contract.Traits{Taints: true})
	if !held || len(c.Pods) != 2 || len(c.Nodes) != 1 || c.Attempted {
		t.Errorf("held %v: %+v", held, c)
	}
	f.Status.Targets[1].Attempts = 1
	if c, _ := Held(f, contract.Traits{}); !c.Attempted || len(c.Nodes) != 0 {
		t.Errorf("%+v", c)
	}
	if _, waits := Waiting(f); waits {
		t.Error("a recorded fault waits")
	}
	f.Status.Holding = nil
	if _, held := Held(f, contract.Traits{}); held {
		t.Error("a reverted fault holds something")
	}
}

// A fault apart from the servers claims what it scales and nothing else, by default in its own namespace.
func TestClaimOfAFaultApart(t *testing.T) {
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "away", UID: "away"}}
	targets := []v1alpha1.FaultTarget{{Pod: "redis-0", Node: "node-1"}}
	for namespace, want := range map[string]string{"": "shop/operator", "operators": "operators/operator"} {
		c := Wanted(f, contract.Traits{
			Apart: true, Place: contract.Place{Deployment: types.NamespacedName{Namespace: namespace, Name: "operator"}},
		}, targets, []string{"StatefulSet/redis"}, nil, epoch)
		if c.Deployment != want || len(c.Pods)+len(c.Workloads)+len(c.Nodes) > 0 {
			t.Errorf("%+v, want %s alone", c, want)
		}
	}
}

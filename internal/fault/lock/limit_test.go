package lock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
)

func after(seconds int, change func(*Claim)) func(*Claim) {
	return func(c *Claim) {
		c.Since = epoch.Add(time.Duration(seconds) * time.Second)
		if change != nil {
			change(c)
		}
	}
}

func elsewhere(c *Claim) { c.Fault.Namespace = "bank" }

func waits(limit v1alpha1.PolicyLimit) func(*Claim) { return func(c *Claim) { c.Limit = limit } }

func on(nodes ...string) func(*Claim) { return func(c *Claim) { c.Nodes = nodes } }

// A fault waits while as many act as may, and while others have waited for longer for the same limit.
func TestFull(t *testing.T) {
	two := Limit{v1alpha1.LimitFaults, 2, "maxFaults"}
	within := Limit{v1alpha1.LimitNamespaceFaults, 1, `rule "a", rules[0].maxFaults`}
	nodes := Limit{v1alpha1.LimitTaintedNodes, 2, "maxTaintedNodes"}
	a, b, far := claim("a", nil), claim("b", after(1, nil)), claim("far", elsewhere)
	for _, tc := range []struct {
		name          string
		limit         Limit
		wanted        Claim
		held, waiting []Claim
		want          string
	}{
		{"nobody acts", two, claim("x", nil), nil, nil, ""},
		{"one acts", two, claim("x", nil), []Claim{a}, nil, ""},
		{"two act", two, claim("x", nil), []Claim{b, a}, nil, "2 of 2 faults act: a, b (policy: maxFaults)"},
		{
			"two act, one elsewhere",
			two,
			claim("x", nil),
			[]Claim{a, far},
			nil,
			"2 of 2 faults act: a, bank/far (policy: maxFaults)",
		},
		{"itself", two, claim("x", nil), []Claim{a, claim("x", nil)}, nil, ""},
		{
			"one waits for longer",
			two,
			claim("x", after(9, nil)),
			[]Claim{a},
			[]Claim{claim("w", after(2, waits(v1alpha1.LimitFaults)))},
			"1 of 2 faults act: a; longer waiting: w (policy: maxFaults)",
		},
		{
			"one waits for less long",
			two,
			claim("x", after(1, nil)),
			[]Claim{a},
			[]Claim{claim("w", after(2, waits(v1alpha1.LimitFaults)))},
			"",
		},
		{
			"one waits for longer for something else",
			two,
			claim("x", after(9, nil)),
			[]Claim{a},
			[]Claim{claim("w", after(2, waits(v1alpha1.LimitTaintedNodes))), claim("v", after(2, nil))},
			"",
		},
		{
			"nothing may act",
			Limit{v1alpha1.LimitFaults, 0, "maxFaults"},
			claim("x", nil),
			nil,
			nil,
			"0 of 0 faults act (policy: maxFaults)",
		},
		{"one acts elsewhere", within, claim("x", nil), []Claim{far}, nil, ""},
		{
			"one acts here",
			within,
			claim("x", nil),
			[]Claim{a, far},
			nil,
			`1 of 1 faults act in namespace shop: a (policy: rule "a", rules[0].maxFaults)`,
		},
		{"no node", nodes, claim("x", nil), []Claim{claim("a", on("n1", "n2"))}, nil, ""},
		{
			"a third node",
			nodes,
			claim("x", on("n3")),
			[]Claim{claim("a", on("n1")), claim("b", on("n2"))},
			nil,
			"faults have tainted 2 of 2 nodes: a (node n1), b (node n2) (policy: maxTaintedNodes)",
		},
		{"a second node", nodes, claim("x", on("n2")), []Claim{claim("a", on("n1")), b}, nil, ""},
		{"one of the nodes", nodes, claim("x", on("n2")), []Claim{claim("a", on("n1", "n2"))}, nil, ""},
	} {
		if got, full := tc.limit.Full(tc.wanted, tc.held, tc.waiting); got != tc.want || full != (tc.want != "") {
			t.Errorf("%s: %t, %q, want %q", tc.name, full, got, tc.want)
		}
	}
	if !nodes.Never(claim("x", on("n1", "n2", "n3"))) || nodes.Never(claim("x", on("n1", "n2"))) ||
		(Limit{v1alpha1.LimitFaults, 0, ""}).Never(claim("x", nil)) {
		t.Error("Never is for what cannot come to fit")
	}
	var many []Claim
	for i := range 8 {
		many = append(many, claim(fmt.Sprint("f", i), after(9-i, nil)))
	}
	if got, _ := two.Full(claim("x", nil), many,
		nil); got != "8 of 2 faults act: f7, f6, f5, f4, f3, 3 more (policy: maxFaults)" {
		t.Error(got)
	}
}

// Faults are recorded in any order and at any time, and each lists the others before it acts: never do more act than
// may, and in the end all have acted.
func TestTurn(t *testing.T) {
	seed := rand.Uint64()
	for round := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, round))
		limit := Limit{v1alpha1.LimitFaults, 1 + random.IntN(3), "maxFaults"}
		if random.IntN(2) == 0 {
			limit.Of = v1alpha1.LimitTaintedNodes
		}
		s := newSchedule(random, limit, 2+random.IntN(6))
		for step := 0; len(s.done) < s.faults; step++ {
			if step > 100_000 {
				t.Fatalf("seed %d, round %d: %v act, %v are done", seed, round, s.recorded, s.done)
			}
			s.step(random)
			if acting := s.acting(); limit.exceeded(acting...) {
				t.Fatalf("seed %d, round %d: %d act, %d may", seed, round, len(acting), limit.Max)
			}
		}
	}
}

// schedule is faults of several operators, which record, check, act and end in random order.
type schedule struct {
	limit    Limit
	faults   int
	claims   []Claim
	recorded map[int]bool // in the API server
	begun    map[int]bool // has passed the check; stored later, as Attempted
	done     map[int]bool
}

func newSchedule(random *rand.Rand, limit Limit, faults int) *schedule {
	s := &schedule{limit: limit, faults: faults, recorded: map[int]bool{}, begun: map[int]bool{}, done: map[int]bool{}}
	for i := range faults {
		name := fmt.Sprint("f", i)
		s.claims = append(s.claims, Claim{
			Fault: types.NamespacedName{Namespace: "shop", Name: name},
			UID:   types.UID(name),
			Since: epoch.Add(time.Duration(random.IntN(3)) * time.Second),
			Nodes: []string{fmt.Sprint("n", i)},
		})
	}
	return s
}

func (s *schedule) held() []Claim {
	var held []Claim
	for i := range s.claims {
		if s.recorded[i] {
			held = append(held, s.claims[i])
		}
	}
	return held
}

func (s *schedule) acting() []Claim {
	var acting []Claim
	for i := range s.claims {
		if s.begun[i] {
			acting = append(acting, s.claims[i])
		}
	}
	return acting
}

// step does what one fault's operator would do next.
func (s *schedule) step(random *rand.Rand) {
	i := random.IntN(s.faults)
	c := &s.claims[i]
	switch {
	case s.done[i]:
	case !s.recorded[i]: // by a cache that knows nothing of the others, at worst
		s.recorded[i] = true
		c.Since = epoch.Add(time.Duration(random.IntN(20)) * time.Second)
	case !s.begun[i]:
		fits, yields := s.limit.Turn(*c, s.held())
		switch {
		case fits:
			s.begun[i] = true
		case yields:
			s.recorded[i] = false
		}
	case !c.Attempted:
		c.Attempted = true
	default:
		s.recorded[i], s.begun[i], s.done[i] = false, false, true
	}
}

func TestFirst(t *testing.T) {
	claims := []Claim{claim("c", after(3, nil)), claim("a", after(1, nil)), claim("b", after(2, nil))}
	var names []string
	for _, c := range First(claims, 2) {
		names = append(names, c.Fault.Name)
	}
	if !slices.Equal(names, []string{"a", "b"}) || len(First(nil, 2)) != 0 || len(First(claims, 9)) != 3 {
		t.Error(names)
	}
}

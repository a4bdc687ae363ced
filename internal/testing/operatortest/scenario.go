package operatortest

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Scenario is what most tests of the operator begin with: one operator, a Redis of one pod, a load
// on it, and faults. A test creates itself what comes later, or differs.
type Scenario struct {
	// Load is made by LongRun, Lasting or Load; nil = none.
	Load     func(address string) *v1alpha1.RedisLoadTest
	Measured bool // the faults are created once the load is measured
	Faults   []*v1alpha1.RedisFault
}

// Run runs a test in a world of its own, in which the scenario has begun.
func (s Scenario) Run(t *testing.T, test func(*World)) {
	t.Helper()
	InWorld(t, func(w *World) {
		w.Redis = w.StartRedis("")
		w.Kubelet.Start()
		s.begin(w.Place)
		test(w)
	})
}

// begin starts the operator, and creates the objects.
func (s Scenario) begin(p *Place) {
	p.T.Helper()
	p.Operator = StartOperator(p, Spy{})
	if s.Load != nil {
		p.CreateLoad(s.Load)
	}
	if s.Measured {
		p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	}
	for _, f := range s.Faults {
		p.Create(f)
	}
}

// CreateLoad creates a load on the Redis of the scenario.
func (p *Place) CreateLoad(load func(address string) *v1alpha1.RedisLoadTest) {
	p.T.Helper()
	p.Create(load(p.Redis.Address()))
}

// Load is the load of a Scenario: NewLoadTest of the name run, with changes.
func Load(changes ...func(*v1alpha1.RedisLoadTest)) func(address string) *v1alpha1.RedisLoadTest {
	return func(address string) *v1alpha1.RedisLoadTest {
		return NewLoadTest("run", address, func(test *v1alpha1.RedisLoadTest) {
			for _, change := range changes {
				change(test)
			}
		})
	}
}

// Lasting is Load for some time.
func Lasting(
	d time.Duration, changes ...func(*v1alpha1.RedisLoadTest),
) func(address string) *v1alpha1.RedisLoadTest {
	return Load(append(changes, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Duration = Length(d)
	})...)
}

// UntilFaultsSettle lets a load go on for its faults, for ten minutes at most.
func UntilFaultsSettle(test *v1alpha1.RedisLoadTest) {
	test.Spec.Load.UntilFaultsSettle = Length(10 * time.Minute)
}

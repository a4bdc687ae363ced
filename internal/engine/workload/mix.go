package workload

import (
	"math/bits"
	"math/rand/v2"

	"github.com/redquake/redquake/internal/plan"
)

// mix is a workload's operations and the weighted choice among them.
type mix struct {
	operations []plan.Operation
	tallies    []string
	upTo       []uint64 // cumulative weights
	salt       uint64   // of the plan's seed: sets the draws of this run apart
}

// mixOf returns the mix of a plan's workload.
func mixOf(w *plan.Workload) mix {
	m := newMix(w.Operations(), w.Tallies()...)
	if w.Seed != 0 {
		m.salt = mix64(w.Seed)
	}
	return m
}

func newMix(operations []plan.Operation, tallies ...string) mix {
	m := mix{operations: operations, tallies: tallies}
	var sum uint64
	for _, o := range operations {
		sum += uint64(o.Weight)
		m.upTo = append(m.upTo, sum)
	}
	return m
}

// Operations returns the operations in the order of every record.
func (m *mix) Operations() []plan.Operation {
	return m.operations
}

// Tallies returns the names of further counters.
func (m *mix) Tallies() []string {
	return m.tallies
}

// OperationOf returns the operation of an arrival of an open loop.
func (m *mix) OperationOf(arrival int64) int {
	return m.pick(mix64(uint64(arrival) + m.salt))
}

// chance is the random generator of one source or caller, seeded with its number and the salt of
// the run.
type chance struct {
	mix *mix
	pcg *rand.PCG
	rng *rand.Rand // over pcg
}

func newChance(m *mix, number int64) chance {
	salt := uint64(0)
	if m != nil {
		salt = m.salt
	}
	pcg := rand.NewPCG(0x5265647175616b65^salt, mix64(uint64(number)+salt))
	return chance{
		mix: m,
		pcg: pcg,
		rng: rand.New(pcg),
	}
}

// mix64 turns a counter into well distributed bits: the finalizer of SplitMix64 (Steele, Lea, Flood
// 2014).
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Pick returns the operation of the next request of a closed loop.
func (c *chance) Pick() int {
	if len(c.mix.upTo) == 1 {
		return 0
	}
	return c.mix.pick(c.pcg.Uint64())
}

// pick chooses an operation by weight from 64 random bits. The bias is below sum/2^32 if the sum of
// the weights is below 2^32.
func (m *mix) pick(bits uint64) int {
	if len(m.upTo) == 1 {
		return 0
	}
	x := (bits >> 32) * m.upTo[len(m.upTo)-1] >> 32
	for i, up := range m.upTo {
		if x < up {
			return i
		}
	}
	return len(m.upTo) - 1
}

// below returns a random number in [0, n). The bias is below n/2^64.
func (c *chance) below(n int64) int64 {
	hi, _ := bits.Mul64(c.pcg.Uint64(), uint64(n))
	return int64(hi)
}

package experiment

import (
	"math/rand/v2"
	"time"
)

// Slot is a run's place in an experiment.
type Slot struct {
	Number  int // from 1, in the order in which they run
	Round   int // from 1
	Variant int // its position in Plan.Variants
}

// runsPerRound is how many runs a round has.
func (p *Plan) runsPerRound() int {
	n := 0
	for i := range p.Variants {
		n += p.repeats(i)
	}
	return n
}

// repeats is how often a variant runs in a round.
func (p *Plan) repeats(variant int) int {
	if p.Variants[variant].Baseline == variant {
		return p.BaselineRepeats
	}
	return 1
}

// Runs is how many runs the experiment has.
func (p *Plan) Runs() int {
	return p.Repeat * p.runsPerRound()
}

// Slot is the place of a run: the same for the same seed.
func (p *Plan) Slot(number int, seed int64) Slot {
	perRound := p.runsPerRound()
	round, position := (number-1)/perRound, (number-1)%perRound
	var order []int
	for repeat := range p.BaselineRepeats {
		for i := range p.Variants {
			if repeat < p.repeats(i) {
				order = append(order, i)
			}
		}
	}
	if p.Shuffled {
		random := rand.New(rand.NewPCG(uint64(seed), uint64(round)))
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return Slot{Number: number, Round: round + 1, Variant: order[position]}
}

// Delay is the random delay of a run's n-th fault, up to a limit: the same for the same seed.
func Delay(seed int64, number, fault int, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	random := rand.New(rand.NewPCG(uint64(seed), 1<<32|uint64(number)<<8|uint64(fault)))
	return time.Duration(random.Int64N(int64(limit) + 1)).Round(time.Millisecond)
}

package pace

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
)

// chunkSize is how many arrivals are drawn at once: 32 KiB.
const chunkSize = 4096

// Chunk is consecutive arrivals of a Poisson process: for each, the integral of the run's rate at
// which it is due.
type Chunk struct {
	number int64
	at     [chunkSize]float64
}

// poisson is the Poisson process of one pod, on the axis of the integral of the run's rate, where
// its rate is constant. Each chunk has a generator of its own: any of them can be drawn again, once
// it is known where it begins. It is safe for concurrent use.
type poisson struct {
	seed, pod uint64
	mean      float64 // between two arrivals: the number of pods

	mu     sync.Mutex
	begins []float64 // of each chunk up to the first that was not drawn yet
	recent [16]atomic.Pointer[Chunk]
}

func newPoisson(seed uint64, pod, pods int64) *poisson {
	return &poisson{
		seed:   seed,
		pod:    uint64(pod),
		mean:   float64(pods),
		begins: []float64{0},
	}
}

// at returns the integral at which arrival i is due; infinity if that is above most, which bounds
// how much is drawn.
func (p *poisson) at(near **Chunk, i int64, most float64) float64 {
	number := i / chunkSize
	if *near == nil || (*near).number != number {
		*near = p.chunk(number, most)
		if *near == nil {
			return math.Inf(1)
		}
	}
	return (*near).at[i%chunkSize]
}

// chunk returns a chunk; nil if it begins above most.
func (p *poisson) chunk(number int64, most float64) *Chunk {
	slot := &p.recent[number%int64(len(p.recent))]
	if c := slot.Load(); c != nil && c.number == number {
		return c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for int64(len(p.begins)) <= number {
		last := len(p.begins) - 1
		if p.begins[last] > most {
			return nil
		}
		p.begins = append(p.begins, p.draw(int64(last)).at[chunkSize-1])
	}
	c := p.draw(number)
	slot.Store(c)
	return c
}

// draw draws a chunk whose begin is known.
func (p *poisson) draw(number int64) *Chunk {
	var seed [32]byte
	copy(seed[:8], "arrivals")
	binary.LittleEndian.PutUint64(seed[8:], p.seed)
	binary.LittleEndian.PutUint64(seed[16:], p.pod)
	binary.LittleEndian.PutUint64(seed[24:], uint64(number))
	gaps := rand.New(rand.NewChaCha8(seed))
	c := &Chunk{number: number}
	at := p.begins[number]
	for i := range c.at {
		at += gaps.ExpFloat64() * p.mean
		c.at[i] = at
	}
	return c
}

// before returns how many arrivals are due at an integral below a.
func (p *poisson) before(a float64) int64 {
	for number := p.begun(a); ; number++ {
		c := p.chunk(number, math.Inf(1))
		if c.at[chunkSize-1] >= a {
			return number*chunkSize + int64(sort.SearchFloat64s(c.at[:], a))
		}
	}
}

// begun returns the last of the known chunks that begins below a.
func (p *poisson) begun(a float64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(max(0, sort.SearchFloat64s(p.begins, a)-1))
}

// poissonArrivals is Arrivals with Poisson arrivals, without a grid. It agrees with exact to the nanosecond, whatever
// the rounding of the integral and its inverse.
func (p *Pacer) poissonArrivals(t int64) int64 {
	var near *Chunk
	n := min(p.Total, p.random.before(p.rate.Integral(t)))
	for n > 0 && p.exact(&near, n-1) >= t {
		n--
	}
	for n < p.Total && p.exact(&near, n) < t {
		n++
	}
	return n
}

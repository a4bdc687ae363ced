package pace

import (
	"iter"
	"math"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// Pacer schedules one pod's open-loop arrivals in advance. It is pure: the due time of arrival i
// depends only on the plan.
//
// With A(t) the integral of the rate over all pods, arrival j of the run is due when A(t) = j + 1/2
// (the half keeps the first arrival away from the instant at which a ramp-up still has rate 0). Pod
// p of P has the arrivals j = i*P + p: the pods' arrivals interleave evenly.
// Of Poisson arrivals, those of a pod are due when A(t) is the sum of exponential draws of mean P:
// each pod has a Poisson process of its part of the rate, and all of them together one of the rate,
// whatever that does over time.
type Pacer struct {
	rate      plan.Schedule
	peak      float64 // the highest rate, also of steps to come
	pods, pod int64
	// arrivals of this pod over the whole run; with Poisson arrivals at most: its length may end it
	// before
	Total    int64
	Stepped  time.Duration // when the last step begins; 0 = no step so far
	StepRate float64       // its rate

	random *poisson // nil = even arrivals
	end    int64    // with Poisson arrivals: none is due at or after it

	loops int64 // that the arrivals are dealt to in turn, with a grid; else 1
	// nanoseconds, see OnGrid; 0 = each arrival has an instant of its own. train is how long the
	// arrivals of a tick take
	tick, train int64
}

// Limits of ticks, instants in nanoseconds.
const (
	longestTick = int64(500 * time.Microsecond)
	mostPerTick = 8                            // arrivals of a loop
	fewPerTick  = 2                            // with fewer they share no wake-up
	spacing     = int64(10 * time.Microsecond) // of the arrivals in a tick: it takes as long to send one
)

// OnGrid returns the pacer of the same arrivals, of which those of a loop within a tick follow one
// another as fast as it can send them: each time that a process sleeps and wakes up, and that it
// wakes up a server, costs as much CPU as several requests. The time within a tick is compressed,
// so that the number of a loop's arrivals before the begin of any of its ticks stays the same. Ticks
// depend on the highest rate of a loop, of the pod's loops, and on how many requests one can have in
// flight; at low rates there are none. Those of loops and pods are shifted against one another.
func (p *Pacer) OnGrid(loops, inFlight int64) *Pacer {
	const microsecond = int64(time.Microsecond)
	next, perTick := *p, float64(min(mostPerTick, inFlight/loops/4))
	rate := p.peak / float64(p.pods*loops)
	tick := int64(math.Ceil(1e9*perTick/max(rate, 1)/float64(microsecond))) * microsecond
	tick = min(longestTick, tick)
	if perTick = rate * float64(tick) / 1e9; perTick >= fewPerTick {
		next.loops = loops
		next.tick = tick
		next.train = min(tick, int64(perTick*float64(spacing)))
	}
	return &next
}

// phase is when the first tick of a loop begins.
func (p *Pacer) phase(loop int64) int64 {
	return p.tick * (loop*p.pods + p.pod) / (p.loops * p.pods)
}

// toGrid moves an arrival of a loop towards the begin of its tick, but not before the load or a step
// began.
func (p *Pacer) toGrid(loop, due int64) int64 {
	if p.tick == 0 || due == math.MaxInt64 {
		return due
	}
	begin := int64(0)
	if at := int64(p.Stepped); due >= at {
		begin = at
	}
	within := (due - p.phase(loop) + p.tick) % p.tick
	return max(begin, due-within+(within*p.train+p.tick-1)/p.tick)
}

// fromGrid is until when a loop's arrivals are due without a grid that are due before t on it.
func (p *Pacer) fromGrid(loop, t int64) int64 {
	if p.tick == 0 || t >= math.MaxInt64-p.tick {
		return t
	}
	end := t
	if within := (t - p.phase(loop) + p.tick) % p.tick; within > 0 {
		end = t - within + min(p.tick, (within-1)*p.tick/p.train+1)
	}
	if at := int64(p.Stepped); t <= at {
		return min(end, at)
	}
	return end
}

// NewPacer returns the pacer of a pod.
func NewPacer(p *plan.Plan, pod int) *Pacer {
	pc := &Pacer{
		rate:  plan.NewSchedule(p.Shape),
		peak:  plan.NewSchedule(p.Shape).Peak(),
		pods:  int64(p.Pods),
		pod:   int64(pod),
		loops: 1,
		Total: math.MaxInt64,
	}
	if s := p.Shape.Search; s != nil {
		pc.peak = max(pc.peak, s.To)
	}
	if p.Shape.Requests > 0 {
		pc.Total = int64(Share(p.Shape.Requests, uint64(p.Pods), uint64(pod)))
	}
	length := p.Shape.Length()
	if p.Shape.Arrivals == plan.Poisson {
		pc.random = newPoisson(p.Workload.Seed, pc.pod, pc.pods)
		pc.end = math.MaxInt64
		if length > 0 {
			pc.end = int64(length)
		}
		return pc
	}
	if length > 0 {
		pc.Total = pc.arrivals(int64(length))
	}
	return pc
}

// Step returns the pacer of the same run with another rate from at until end; rate 0 ends the load
// at at. Arrivals before at do not change.
func (p *Pacer) Step(at, end time.Duration, rate float64) *Pacer {
	next := *p
	next.rate = p.rate.Step(at, rate)
	next.Stepped, next.StepRate, next.Total = at, rate, math.MaxInt64
	if rate == 0 {
		end = at
	}
	if p.random != nil {
		next.end = int64(end)
		return &next
	}
	next.Total = next.arrivals(int64(end))
	return &next
}

// DiscardBefore is the instant before which waiting arrivals are dropped: each trial of a search
// begins without the backlog of the previous one.
func (p *Pacer) DiscardBefore(now int64) int64 {
	if at := int64(p.Stepped); at <= now {
		return at
	}
	return 0
}

// Due returns when arrival i of this pod is due, in nanoseconds since the start; math.MaxInt64 if
// there is no such arrival.
func (p *Pacer) Due(i int64) int64 {
	var near *Chunk
	return p.DueNear(&near, i)
}

// DueNear is Due for a caller that asks for one arrival after the other: near is what it keeps
// between the calls, nil at first.
func (p *Pacer) DueNear(near **Chunk, i int64) int64 {
	return p.toGrid(i%p.loops, p.exact(near, i))
}

// exact is when an arrival is due without a grid.
func (p *Pacer) exact(near **Chunk, i int64) int64 {
	switch {
	case i >= p.Total:
		return math.MaxInt64
	case p.random == nil:
		return p.rate.WhenIntegral(float64(i*p.pods+p.pod) + 0.5)
	}
	due := p.rate.WhenIntegral(p.random.at(near, i, p.most()))
	if due >= p.end {
		return math.MaxInt64
	}
	return due
}

// most is the integral of the rate at the end.
func (p *Pacer) most() float64 {
	if p.end == math.MaxInt64 {
		return math.Inf(1)
	}
	return p.rate.Integral(p.end)
}

// EndsByRequests reports whether the pod's part of the requests ends its load before its length
// does.
func (p *Pacer) EndsByRequests(requests int64) bool {
	return requests <= 0 || p.Due(requests-1) != math.MaxInt64
}

// Expected is how many arrivals are due before t nanoseconds on average.
func (p *Pacer) Expected(t int64) float64 {
	return min(float64(p.Total), p.rate.Integral(t)/float64(p.pods))
}

// Arrivals returns how many arrivals of this pod are due before t nanoseconds.
func (p *Pacer) Arrivals(t int64) (sum int64) {
	for loop := range p.loops {
		sum += p.ofLoop(loop, t)
	}
	return sum
}

// Between yields the arrivals that are due in [from, to), those of each loop in order.
func (p *Pacer) Between(from, to int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for loop := range p.loops {
			end := p.ofLoop(loop, to)
			for k := p.ofLoop(loop, from); k < end; k++ {
				if !yield(loop + k*p.loops) {
					return
				}
			}
		}
	}
}

// ofLoop is how many arrivals of a loop are due before t.
func (p *Pacer) ofLoop(loop, t int64) int64 {
	if t <= 0 {
		return 0
	}
	return Share(p.arrivals(p.fromGrid(loop, t)), p.loops, loop)
}

// arrivals is Arrivals without a grid.
func (p *Pacer) arrivals(t int64) int64 {
	if p.random != nil {
		return p.poissonArrivals(min(t, p.end))
	}
	run := int64(math.Ceil(p.rate.Integral(t) - 0.5))
	return min(p.Total, Share(max(run, 0), p.pods, p.pod))
}

// meanGap is the mean time between this pod's arrivals at t, in nanoseconds; 0 when the rate is 0.
func (p *Pacer) meanGap(t int64) int64 {
	if r := p.rate.Level(t); r > 0 {
		return int64(1e9 * float64(p.pods) / r)
	}
	return 0
}

// budget is how many requests this pod may still send.
type budget struct{ Left atomic.Int64 }

// Claim takes up to n requests from the budget and returns how many it took.
func (b *budget) Claim(n int) int {
	for {
		left := b.Left.Load()
		if left == math.MaxInt64 {
			return n
		}
		k := min(int64(n), left)
		if k <= 0 || b.Left.CompareAndSwap(left, left-k) {
			return int(max(k, 0))
		}
	}
}

// Share returns the share of one part, 0 <= part < parts, when total items are distributed
// round-robin: floor(total/parts), plus one for the first total mod parts.
func Share[T int | int64 | uint64](total, parts, part T) T {
	if part >= total {
		return 0
	}
	return (total-part-1)/parts + 1
}

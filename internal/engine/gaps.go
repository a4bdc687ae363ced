package engine

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// gapFloor is the minimum length of a gap.
const gapFloor = int64(5 * time.Millisecond)

// gapLog records every period without a success that is longer than its threshold, with exact ends. Instants are nanoseconds since the start.
type gapLog struct {
	last      atomic.Int64 // the latest success; 0 before the first: the start
	threshold atomic.Int64

	mu    sync.Mutex
	ended []record.Gap
}

func newGapLog(threshold int64) *gapLog {
	g := &gapLog{}
	g.threshold.Store(max(threshold, gapFloor))
	return g
}

// success records a success at the instant at. Successes may be reported out of order: only one that is later than all previous ones ends a gap.
func (g *gapLog) success(at int64) {
	for {
		last := g.last.Load()
		if at <= last {
			return
		}
		if !g.last.CompareAndSwap(last, at) {
			continue
		}
		if at-last > g.threshold.Load() {
			g.mu.Lock()
			g.ended = append(g.ended, record.Gap{From: last, To: at})
			g.mu.Unlock()
		}
		return
	}
}

// take removes and returns the gaps that ended before instant end, in order of time.
func (g *gapLog) take(end int64) []record.Gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out, keep []record.Gap
	for _, gap := range g.ended {
		if gap.To < end {
			out = append(out, gap)
		} else {
			keep = append(keep, gap)
		}
	}
	g.ended = keep
	slices.SortFunc(out, func(a, b record.Gap) int { return cmp.Compare(a.From, b.From) })
	return out
}

// open returns the gap that has not ended at the instant end, if there is one.
func (g *gapLog) open(end int64) (record.Gap, bool) {
	last := g.last.Load()
	return record.Gap{From: last, To: end, Open: true}, end-last > g.threshold.Load()
}

// successPace is the mean time between recent successes. gapLog's threshold follows it in a closed loop, whose rate is not known in advance.
// Periods longer than pauseCut without a success are excluded, so that an outage does not change the mean.
type successPace struct {
	step  int64
	ring  []paceCell
	next  int
	spent int64 // sum of the ring
	count uint64
	quiet int64 // time without a success, in whole intervals
}

type paceCell struct {
	spent int64
	count uint64
}

const (
	paceWindow = int64(10 * time.Second)
	pauseCut   = int64(time.Second)
)

func newSuccessPace(step int64) *successPace {
	return &successPace{step: step, ring: make([]paceCell, max(1, paceWindow/step))}
}

// add adds a finished interval with ok successes.
func (p *successPace) add(ok uint64) {
	if ok > 0 {
		p.quiet = 0
	} else if p.quiet += p.step; p.quiet > pauseCut {
		return
	}
	c := &p.ring[p.next]
	p.spent += p.step - c.spent
	p.count += ok - c.count
	*c = paceCell{spent: p.step, count: ok}
	p.next = (p.next + 1) % len(p.ring)
}

// mean is the mean time between successes, in nanoseconds; 0 if there were none.
func (p *successPace) mean() int64 {
	if p.count == 0 {
		return 0
	}
	return p.spent / int64(p.count)
}

// unknownPace is the assumed time between successes before the first one, nanoseconds.
const unknownPace = int64(50 * time.Millisecond)

package engine

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// pacer fixes one pod's open-loop arrivals in advance. It is pure: arrival i's due time depends on nothing but the plan.
//
// With A(t) the integral of the rate over all pods, arrival j of the run is due when A(t) = j + 1/2 (the half keeps the first one off the
// instant at which a ramp still has rate 0). Pod p of P has the arrivals j = i*P + p: the pods' arrivals interleave evenly.
type pacer struct {
	rate      plan.Schedule
	pods, pod int64
	total     int64         // arrivals of this pod in the whole run
	stepped   time.Duration // when the last step begins; 0 = there was none
	stepRate  float64       // its rate
}

// newPacer is pod's pacer. length is the run's in nanoseconds, 0 = until the requests are done.
func newPacer(p *plan.Plan, pod int) *pacer {
	pc := &pacer{rate: plan.NewSchedule(p.Shape), pods: int64(p.Pods), pod: int64(pod), total: math.MaxInt64}
	if p.Shape.Requests > 0 {
		pc.total = int64(share(p.Shape.Requests, uint64(p.Pods), uint64(pod)))
	}
	if length := p.Shape.Length(); length > 0 {
		pc.total = pc.arrivals(int64(length))
	}
	return pc
}

// step is the pacer of the same run with another rate from at on, until end; rate 0 ends it at at. The arrivals before at stay as they are.
func (p *pacer) step(at, end time.Duration, rate float64) *pacer {
	next := *p
	next.rate = p.rate.Step(at, rate)
	next.stepped, next.stepRate, next.total = at, rate, math.MaxInt64
	if rate == 0 {
		end = at
	}
	next.total = next.arrivals(int64(end))
	return &next
}

// forgone is the instant before which arrivals that wait are let be: each trial of a search begins without the backlog of the one before.
func (p *pacer) discardBefore(now int64) int64 {
	if at := int64(p.stepped); at <= now {
		return at
	}
	return 0
}

// due is when arrival i of this pod is due, in nanoseconds since the start; math.MaxInt64 if never.
func (p *pacer) due(i int64) int64 {
	if i >= p.total {
		return math.MaxInt64
	}
	return p.rate.WhenIntegral(float64(i*p.pods+p.pod) + 0.5)
}

// arrivals is how many arrivals of this pod are due before t nanoseconds.
func (p *pacer) arrivals(t int64) int64 {
	if t <= 0 {
		return 0
	}
	run := int64(math.Ceil(p.rate.Integral(t) - 0.5))
	return min(p.total, share(max(run, 0), p.pods, p.pod))
}

// meanGap is the mean time between this pod's arrivals at t, in nanoseconds; 0 when the rate is 0.
func (p *pacer) meanGap(t int64) int64 {
	if r := p.rate.Level(t); r > 0 {
		return int64(1e9 * float64(p.pods) / r)
	}
	return 0
}

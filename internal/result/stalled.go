package result

import (
	"fmt"
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
)

// Stalled is the time in which a load generator did not run, and the bounds of figures of requests
// that may only have been late, or not sent, because of it.
type Stalled struct {
	Pod     int     `json:"pod"`            // the one that stalled for longest
	Length  Seconds `json:"lengthSeconds"`  // of all its stalls together
	Count   int     `json:"count"`          // of its stalls, at least
	Longest Seconds `json:"longestSeconds"` // of its stalls
	Share   float64 `json:"share"`          // of the time in stalls, on average of the pods
	// Waited is for a CPU, in stalls and in waits that are too short for one; absent if the kernel
	// does not count it.
	Waited *Waited `json:"waited,omitempty"`

	Latency    *Quantiles `json:"latencyAtLeastSeconds,omitempty"`
	Throughput float64    `json:"throughputAtMostPerSecond"`
	ErrorRate  float64    `json:"errorRateAtLeast"`
}

// Waited is for how long the threads of a load generator were ready to run and did not, as others
// had the CPU.
type Waited struct {
	Pod    int     `json:"pod"`           // the one that lost the largest share
	Length Seconds `json:"lengthSeconds"` // of its threads together
	Ran    Seconds `json:"ranSeconds"`    // the CPU time that it used meanwhile
	Share  float64 `json:"share"`         // of the time that it lost at most, from 0 to 1
}

// String says who did not run, and for how long.
func (s *Stalled) String() string {
	if s.MostlyWaited() {
		return s.waits()
	}
	return fmt.Sprintf("load pod %d did not run for %s of the measured time (%d times, at most %s)",
		s.Pod, format.Duration(time.Duration(s.Length)), s.Count,
		format.Duration(time.Duration(s.Longest)))
}

func (s *Stalled) waits() string {
	w := s.Waited
	return fmt.Sprintf(
		"load pod %d waited for a CPU for %s, beside %s in which it ran: up to %s of its time is lost",
		w.Pod, format.Duration(time.Duration(w.Length)), format.Duration(time.Duration(w.Ran)),
		format.Share(w.Share))
}

// MostlyWaited reports whether waits for a CPU, also short ones, took more of the time than stalls
// did.
func (s *Stalled) MostlyWaited() bool {
	return s.Waited != nil && s.Waited.Share > s.Share
}

// Starved reports whether a load generator waited for a CPU for so long that figures that hang on
// it are in doubt.
func (s *Stalled) Starved() bool {
	return s != nil && s.Waited != nil && s.Waited.Share >= impact.StarvedShare
}

// Starved returns why less of a closed loop was measured than there can have been, for a tenth and
// more of its throughput; "" = it is not so.
func (r *Load) Starved() string {
	o := &r.Total
	if r.OutsideFaults != nil {
		o = r.OutsideFaults
	}
	s := o.Stalled
	switch between := o.between(); {
	case r.Latency != ServiceTime || between == "":
		return ""
	case s.Starved():
		return s.waits() + between
	case o.Unexplained != nil && *o.Unexplained >= impact.StarvedShare:
		return fmt.Sprintf(
			"%s of the time of the users is missing, beyond what the load generator used of a CPU and "+
				"waited for one: neither requests nor think time took it%s",
			format.Share(*o.Unexplained), between)
	}
	return ""
}

// between says within which bounds the throughput is; "" = they are less than a tenth apart.
func (o *Operation) between() string {
	if o.Stalled == nil || o.Throughput > (1-impact.StarvedShare)*o.Stalled.Throughput {
		return ""
	}
	return fmt.Sprintf(": the throughput is between %s/s and %s/s", format.Rate(o.Throughput),
		format.Rate(o.Stalled.Throughput))
}

// setStalls sets the bounds of the figures that stalls, and waits for a CPU, make uncertain.
func (r *Load) setStalls(p *plan.Plan, series *merged.Series, in LoadInput) {
	from, end := p.Shape.MeasuredFrom(), time.Duration(r.Elapsed)
	stalls := summary.StallsTo(series, from, end, nil)
	if in.Search != nil {
		if first, last, ok := in.Search.window(p); ok {
			stalls = summary.StallsWithin(series, first, last)
		}
	}
	r.Total.SetStalled(stalls, p)
	r.setUserTime(p, series, &r.Total, stalls, nil)
	if r.OutsideFaults != nil {
		stalls = summary.StallsTo(series, from, end, in.Faults)
		r.OutsideFaults.SetStalled(stalls, p)
		r.setUserTime(p, series, r.OutsideFaults, stalls, in.Faults)
	}
}

// setUserTime bounds the throughput of a closed loop by what its users can have done without a time
// that the load generator took. As it tells what is missing apart from waits, these and stalls
// count only once. A pipeline, and users that share connections, leave times that no latency has.
func (r *Load) setUserTime(
	p *plan.Plan, series *merged.Series, o *Operation, stalls *summary.Stalls,
	without []summary.Window,
) {
	if p.Shape.OpenLoop() || p.Client.Pipeline > 1 || r.usersQueue(p) {
		return
	}
	users := plan.NewSchedule(p.Shape)
	level := func(at time.Duration) float64 { return math.Floor(users.Level(int64(at))) }
	from, end := p.Shape.MeasuredFrom(), time.Duration(r.Elapsed)
	spent, ok := summary.UserTimeTo(series, from, end, without, level, p.Shape.ThinkTime)
	if !ok {
		return
	}
	o.Unaccounted = &spent.Missing
	w := summary.WaitingTo(series, from, end, without)
	atMost := max(o.Throughput, spent.Most)
	if w.Busy > 0 {
		o.Unexplained = new(max(0, spent.Missing-w.Busy-w.Mean))
	}
	// than the load generator knows that it lost
	switch more := o.Unexplained != nil && *o.Unexplained >= impact.StarvedShare; {
	case o.Stalled == nil && more:
		o.Stalled = &Stalled{
			Latency:    o.Latency,
			Throughput: atMost,
			ErrorRate:  o.ErrorRate,
		}
	case more:
		o.Stalled.Throughput = atMost
	case stalls != nil && o.Unexplained != nil:
		o.Stalled.Throughput = min(o.Throughput*stalls.OnceFaster/(1-*o.Unexplained), atMost)
	case o.Stalled != nil:
		o.Stalled.Throughput = min(o.Stalled.Throughput, atMost)
	}
}

// SetStalled sets the bounds of an operation of a plan's load; nil = the load generators always
// ran.
func (o *Operation) SetStalled(s *summary.Stalls, p *plan.Plan) {
	if s == nil {
		return
	}
	openLoop := p.Shape.OpenLoop()
	o.Stalled = &Stalled{
		Pod:        s.Pod,
		Length:     Seconds(s.Length),
		Count:      s.Count,
		Longest:    Seconds(s.Longest),
		Latency:    quantilesOf(s.Latency),
		Throughput: o.Throughput * s.Faster,
		ErrorRate:  o.ErrorRate,
		Share:      s.Share,
	}
	if w := s.Waiting; w.Known {
		o.Stalled.Waited = &Waited{
			Pod:    w.Pod,
			Length: Seconds(w.Waited),
			Ran:    Seconds(w.Ran),
			Share:  w.Share,
		}
	}
	if openLoop && o.OK > o.Drained { // all that was due is among the requests
		o.Stalled.Throughput = min(o.Stalled.Throughput,
			o.Throughput*float64(o.Requests)/float64(o.OK-o.Drained))
	}
	if o.Requests > 0 {
		excused := min(float64(o.Dropped+o.Unknown), s.Lost*float64(o.Requests))
		o.Stalled.ErrorRate = max(0, o.ErrorRate-excused/float64(o.Requests))
	}
	switch least := o.Stalled.Latency; {
	case least == nil || o.Latency == nil:
	case !p.KernelStamps() && o.Stalled.Starved():
		least.each(o.Latency, func(least, measured Seconds) Seconds {
			return min(least,
				max(shortest, measured-longestWait))
		})
	case p.KernelStamps() && openLoop && s.Service.Count > 0: // no wait of its own is part of them
		least.each(quantilesOf(s.Service), func(least, service Seconds) Seconds {
			return max(least,
				service)
		})
		least.each(o.Latency, func(least, measured Seconds) Seconds { return min(least, measured) })
	}
}

const (
	// longestWait is the longest wait of a thread that is no stall, between two looks at its sockets.
	longestWait = Seconds(20 * time.Millisecond)
	// shortest is the least latency that is recorded.
	shortest = Seconds(time.Microsecond)
)

// busyConnections is the share of connections that a mean must be in use for users to wait for one.
const busyConnections = 0.8

// doubtQueue adds a doubt if users of a closed loop had to wait for a connection: latency counts
// from the send, so it does not contain that wait.
// Users that think wait only if the connections are busy. With a pipeline, a user's turn is a batch
// that fills a connection: connections hold as many users as without one.
func (r *Load) doubtQueue(p *plan.Plan) {
	if r.Total.Requests == 0 || !r.usersQueue(p) {
		return
	}
	users, connections := r.queue(p)
	if p.Shape.ThinkTime > 0 {
		inFlight := 0.0
		if r.Total.Latency != nil {
			inFlight = r.Total.Throughput * r.Total.Latency.Mean.Seconds()
		}
		if inFlight < busyConnections*float64(connections*p.Client.Pipeline) {
			return
		}
	}
	r.Doubt("UsersQueue",
		fmt.Sprintf(
			"%d users shared %d connections: requests waited for a connection, which no latency contains; "+
				"set client.connections to %d per load pod, or fewer users", users, connections,
			(users+p.Pods-1)/p.Pods))
}

// usersQueue reports whether there are more users of a closed loop than connections.
func (r *Load) usersQueue(p *plan.Plan) bool {
	users, connections := r.queue(p)
	return !p.Shape.OpenLoop() && p.Client.Mode != plan.Multiplexed && users > connections
}

func (r *Load) queue(p *plan.Plan) (users, connections int) {
	// of a cluster, for each shard
	return int(plan.NewSchedule(p.Shape).Peak()), p.Pods * p.Client.Connections * max(1, len(r.Shards))
}

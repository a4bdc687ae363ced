package result

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// longerThanFailover is for how long requests are refused with READONLY if it is no failover, in
// which the load follows the sentinels within a second or two.
const longerThanFailover = 5 * time.Second

// warnings says what explains errors of the load, or makes the target another one than was meant,
// and is for its user to change. By class are the errors outside of the windows of faults: what a
// fault has caused is no reason for a warning. named says which sentinels name which server; "" =
// that is not known.
func (r *Load) warnings(
	byClass *[record.NumClasses]uint64, in bottleneck.Input, named string,
) (all []string) {
	refused := byClass[record.ClassReadOnly]
	lasting, held := bottleneck.Refused(in, record.ClassReadOnly)
	switch {
	case r.Target.Topology == string(plan.TopologySentinel) || len(r.Target.Sentinels) > 0:
		if held < longerThanFailover {
			break
		}
		text := fmt.Sprintf(
			"%d requests were refused with READONLY, for %.1fs: the server that the sentinels named as "+
				"the primary was a replica", lasting, held.Seconds())
		if named != "" {
			text += " (at the end, " + named + ")"
		}
		all = append(all,
			text+
				". Compare SENTINEL GET-MASTER-ADDR-BY-NAME of each sentinel with ROLE of the servers; until "+
				"a sentinel promotes one, or REPLICAOF NO ONE does, all refuse writes")
	case refused > 0 && r.Target.Topology == string(plan.TopologyStandalone):
		all = append(all,
			fmt.Sprintf(
				"%d requests were refused with READONLY: the target's address leads to a replica, or to a primary and its replicas. "+
					"A connection that meets a replica is dialled again until it meets the primary; clients that "+
					"do not dial again fail more often. Set target.sentinel if sentinels know "+
					"the primary, or target.podSelector with target.topology Replication, or use a Service that selects the primary alone",
				refused))
	}
	return append(all, bottleneck.Resyncs(in)...)
}

// mostEnded is how many containers are warned of by name.
const mostEnded = 8

// ended warns of containers of Redis that ended without a fault.
func ended(exits []Exit) (all []string) {
	for _, e := range exits[:min(len(exits), mostEnded)] {
		all = append(all, e.Message)
	}
	if more := len(exits) - mostEnded; more > 0 {
		all = append(all, fmt.Sprintf("the containers of %d more pods ended without a fault", more))
	}
	return all
}

// switches reports whether the throughput changes with each turn of the plan: in a closed loop it
// is what each operation allows.
func switches(p *plan.Plan) bool {
	return p.Turns() != nil && !p.Shape.OpenLoop()
}

// setTurns lets the throughput of operations that were sent one after the other count the time in
// which each was sent within [from, end).
func (r *Load) setTurns(p *plan.Plan, series *merged.Series, from, end time.Duration) {
	turns := p.Turns()
	if turns == nil {
		return
	}
	for k, sent := range lengths(turns, series, from, end, r.costs(p)) {
		o := &r.Operations[k]
		o.Sent = new(Seconds(sent))
		if o.Throughput = 0; sent > 0 {
			o.Throughput = float64(o.OK-o.Drained) / sent.Seconds()
		}
	}
}

// costs is how long a request of each operation keeps its place in the loop: in a closed loop its
// mean latency and the think time, in an open loop the same time for all.
func (r *Load) costs(p *plan.Plan) []time.Duration {
	costs := make([]time.Duration, len(r.Operations))
	for k := range costs {
		costs[k] = time.Nanosecond
		mean := r.Operations[k].Latency
		if mean != nil && !p.Shape.OpenLoop() {
			costs[k] = max(time.Nanosecond, time.Duration(mean.Mean)+p.Shape.ThinkTime)
		}
	}
	return costs
}

// lengths is the length of each turn. Turns that are parts of the requests divide an interval in
// which one follows the other by the time that their requests took.
func lengths(
	turns *plan.Turns, series *merged.Series, from, end time.Duration, costs []time.Duration,
) []time.Duration {
	lengths := make([]time.Duration, turns.Count)
	if turns.Each > 0 {
		for k := range lengths {
			begin, to := turns.Window(k, end)
			lengths[k] = max(0, to-max(begin, from))
		}
		return lengths
	}
	current := 0
	first, last := series.Window(from, end)
	for i := first; i < last; i++ {
		at := time.Duration(i) * series.Step
		took := min(series.Step, end-at)
		busy, all := make([]float64, turns.Count), 0.0
		for k := range busy {
			c := &series.At(i).Ops[k].Counts
			busy[k] = float64(c.OK+c.Fail+c.Unknown+c.Dropped) * costs[k].Seconds()
			if all += busy[k]; busy[k] > 0 {
				current = k
			}
		}
		if all == 0 { // nothing was answered: the turn goes on
			lengths[current] += took
			continue
		}
		for k := range busy {
			lengths[k] += time.Duration(float64(took) * busy[k] / all)
		}
	}
	return lengths
}

// Figure is one of a workload's own figures. Exactly one of Count, Share and Seconds is set.
type Figure struct {
	Name    string   `json:"name"`
	Count   *uint64  `json:"count,omitempty"`
	Share   *float64 `json:"share,omitempty"`
	Seconds *Seconds `json:"seconds,omitempty"` // a mean
}

func figures(readings []plan.Reading) (out []Figure) {
	for _, r := range readings {
		f := Figure{
			Name:  r.Name,
			Count: r.Count,
			Share: r.Share,
		}
		if r.Mean != nil {
			f.Seconds = new(Seconds(*r.Mean))
		}
		out = append(out, f)
	}
	return out
}

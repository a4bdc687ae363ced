package result

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
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

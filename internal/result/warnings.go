package result

import (
	"fmt"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// warnings says what explains errors of the load and is for its user to change. By class are the errors outside of the windows of faults: what a fault has
// caused is no reason for a warning.
func (r *Load) warnings(byClass *[record.NumClasses]uint64, in bottleneck.Input) (all []string) {
	if n := byClass[record.ClassReadOnly]; n > 0 && r.Target.Topology == string(plan.TopologyStandalone) {
		all = append(all, fmt.Sprintf("%d requests were refused with READONLY: the target's address leads to a replica, or to a primary and its replicas. "+
			"A connection that meets a replica is dialled again until it meets the primary; clients that do not dial again fail more often. Set target.sentinel if sentinels know "+
			"the primary, or target.podSelector with target.topology Replication, or use a Service that selects the primary alone", n))
	}
	return append(all, bottleneck.Resyncs(in)...)
}

package failover

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func (f failover) Describe(target *v1alpha1.FaultTarget) contract.Description {
	method, record, err := f.recorded(target)
	if err != nil || method == nil {
		return contract.DescribeRecord(target, func(failoverRecord) contract.Description {
			return contract.Description{Action: fmt.Sprintf("nothing: %v", err)}
		})
	}
	d := contract.Description{
		Action:     fmt.Sprintf("%s; the primary is %s now", method.command(target), record.Primary),
		SelfEnding: "the new primary stays: there is no failback",
	}
	switch s := record.Sentinel; {
	case record.Replication != nil:
		d.Revert = "FAILOVER ABORT while it is not complete"
		d.SelfEnding = fmt.Sprintf("a failover that is not complete after %s is abandoned by the primary",
			f.timeout)
	case s != nil && s.Pause > 0:
		d.Revert = "CLIENT UNPAUSE"
		d.SelfEnding = fmt.Sprintf("the pause of writes ends after %s", s.Pause)
	}
	return d
}

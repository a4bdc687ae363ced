package scale

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Describe implements contract.Injector.
func (s *replicaScale) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record scaleRecord) contract.Description {
		d := contract.Description{
			Action: fmt.Sprintf(
				"scale StatefulSet %s from %d to %d replicas, and wait until they are in sync, at most %s",
				record.StatefulSet, record.Replicas, record.Replicas+s.by, s.timeout),
			Revert: fmt.Sprintf("scale it to %d", record.Replicas),
		}
		if s.by < 0 {
			d.Action = fmt.Sprintf("scale StatefulSet %s from %d to %d replicas", record.StatefulSet,
				record.Replicas, record.Replicas+s.by)
			d.Revert += ", and wait until the replicas are in sync"
		}
		if record.Slot != nil {
			d.Revert += map[bool]string{
				true:  "; all nodes forget the added ones",
				false: "; the removed nodes join again",
			}[s.by > 0]
		}
		return d
	})
}

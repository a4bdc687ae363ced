package volume

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func (v volumeAttachDelay) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record heldRecord) contract.Description {
		taint, untaint, stays := "", "", ""
		if v.taints() {
			taint = ", taint that node"
			untaint = ", and untaint node " + target.Node
			stays = "; the node stays tainted"
		}
		return contract.Description{
			Action: fmt.Sprintf(
				"hold volume %s (claim %s) on node %s by pod %s%s, then delete pod %s without grace period",
				record.Volume, record.Claim, target.Node, v.holderName(target), taint, target.Pod),
			Revert: fmt.Sprintf("delete pod %s%s", v.holderName(target), untaint),
			SelfEnding: fmt.Sprintf("the holder pod ends after %s, which releases the volume%s",
				v.lasts+holderMargin, stays),
		}
	})
}

package node

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func (n nodeLoss) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.Description{
		Action: fmt.Sprintf("taint node %s, then delete pod %s without grace period", n.name, target.Pod),
		Revert: "untaint node " + n.name,
	}
}

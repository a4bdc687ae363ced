package pod

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

const replaced = "the pod's controller replaces it"

// Describe implements contract.Injector.
func (k Kill) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.Description{
		Action:     "delete pod " + target.Pod + " " + k.graceInWords(),
		SelfEnding: replaced,
	}
}

func (k Kill) graceInWords() string {
	switch {
	case k.grace == nil:
		return "with its own grace period"
	case *k.grace == 0:
		return "without grace period"
	}
	return fmt.Sprintf("with a grace period of %ds", *k.grace)
}

func (k keptDown) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.Description{
		Action: fmt.Sprintf("%s, and every replacement at once for %s",
			k.Kill.Describe(target).Action, k.lasts),
		Revert:     "leave the next replacement alone",
		SelfEnding: "without an operator nothing deletes the replacement",
	}
}

package turns

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
)

// maxWorkloads is how many controllers a status lists.
const maxWorkloads = 64

// WorkloadsOf are the controllers of the pods that a fault acts on, by name: of its targets, or of
// all pods of the Redis if it changes roles or sizes. A warning says how many do not fit into the
// status.
func WorkloadsOf(selected guard.Selection, traits contract.Traits) (all, warnings []string) {
	for i := range selected.Pods {
		owner := metav1.GetControllerOf(&selected.Pods[i])
		hit := slices.ContainsFunc(selected.Targets, func(t v1alpha1.FaultTarget) bool {
			return t.UID == string(selected.Pods[i].UID)
		})
		if owner == nil || !hit && !traits.Whole {
			continue
		}
		all = append(all, owner.Kind+"/"+owner.Name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if n := len(all); n > maxWorkloads {
		all = all[:maxWorkloads]
		warnings = []string{
			fmt.Sprintf(
				"status.workloads lists %d of the %d controllers, by name: a fault that acts only on others "+
					"does not wait for this one", maxWorkloads, n),
		}
	}
	return all, warnings
}

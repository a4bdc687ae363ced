package turns

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
)

// maxWorkloads is how many controllers a status lists.
const maxWorkloads = 64

// WorkloadsOf are the controllers of the pods that a fault acts on, by name: of its targets, or of
// all pods of the Redis if it changes roles or sizes. A warning says how many do not fit into the
// status.
func WorkloadsOf(
	ctx context.Context, s *scope.Fault, targets []v1alpha1.FaultTarget,
) (all, warnings []string, err error) {
	pods, err := s.Deps.AllPods(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the controllers of the pods: %w", err)
	}
	for i := range pods {
		owner := metav1.GetControllerOf(&pods[i])
		hit := slices.ContainsFunc(targets, func(t v1alpha1.FaultTarget) bool {
			return t.UID == string(pods[i].UID)
		})
		if owner == nil || !hit && !s.Traits.Whole {
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
	return all, warnings, nil
}

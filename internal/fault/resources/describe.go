package resources

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

func (r *resources) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record resizeRecord) contract.Description {
		return contract.Description{
			Action: fmt.Sprintf("resize container %s of %s in place to %s (now %s)", target.Container,
				target.Pod, inWords(r.wanted(record.before())), inWords(record.before())),
			Revert:     "resize it to " + inWords(record.before()),
			SelfEnding: "a pod that is replaced has the resources of its template",
		}
	})
}

// inWords formats limits and requests: cpu 1 (requested 500m), memory 1Gi.
func inWords(values corev1.ResourceRequirements) string {
	var words []string
	for _, name := range resized {
		limit, limited := values.Limits[name]
		if !limited {
			continue
		}
		word := string(name) + " " + limit.String()
		if request, ok := values.Requests[name]; ok {
			word += " (requested " + request.String() + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// Warnings implements contract.Warner.
func (r *resources) Warnings(target *v1alpha1.FaultTarget) []string {
	record, _, err := contract.Load[resizeRecord](target)
	if err != nil || len(record.Left.Limits) == 0 {
		return nil
	}
	old := record.before()
	names := slices.Collect(maps.Keys(record.Left.Limits))
	return []string{
		fmt.Sprintf(
			"container %s of pod %s has %s (before the fault: %s, by the fault: %s): somebody else has "+
				"resized it while the fault acted, so the revert leaves that",
			target.Container, target.Pod, said(record.Left), said(only(old, names...)),
			said(only(r.wanted(old), names...))),
	}
}

package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
)

// RequireOtherNode returns a Problem where a pod's replacement could not be scheduled to a node
// other than those named. volume, if any, must be reachable there. It checks what rarely changes,
// and neither free CPU and memory nor affinities to other pods.
func RequireOtherNode(
	ctx context.Context, deps contract.Deps, pod *corev1.Pod, volume *corev1.PersistentVolume,
	than ...string,
) error {
	var page corev1.NodeList
	var reasons []string
	fits := false
	err := paging.Each(ctx, deps.Live, &page, func() bool {
		for i := range page.Items {
			node := &page.Items[i]
			if slices.Contains(than, node.Name) {
				continue
			}
			why := unfit(node, pod, volume)
			if fits = why == ""; fits {
				return false
			}
			reasons = append(reasons, node.Name+" "+why)
		}
		page.Items = nil
		return true
	})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	if fits {
		return nil
	}
	if len(reasons) == 0 {
		return problem.Unsupported(
			"there is no node other than %s: the replacement of pod %s could only be scheduled there",
			some(than), pod.Name)
	}
	slices.Sort(reasons)
	return problem.Unsupported("the replacement of pod %s can be scheduled to no node but %s: %s",
		pod.Name, some(than), strings.Join(reasons, "; "))
}

// some is a list of nodes, of which a zone may have many.
func some(nodes []string) string {
	const most = 8
	if n := len(nodes); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(nodes[:most], ", "), n-most)
	}
	return strings.Join(nodes, ", ")
}

// unfit returns why a node does not accept a pod; "" where it does.
func unfit(node *corev1.Node, pod *corev1.Pod, volume *corev1.PersistentVolume) string {
	if node.Spec.Unschedulable {
		return "is unschedulable"
	}
	if !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		return "is not ready"
	}
	keepsOut := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	taint, found := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Background(),
		node.Spec.Taints, pod.Spec.Tolerations, keepsOut, false)
	if found {
		return fmt.Sprintf("has the taint %s", taint.ToString())
	}
	fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil || !fits {
		return "does not match the pod's nodeSelector and node affinity"
	}
	if volume != nil && volume.Spec.NodeAffinity != nil && volume.Spec.NodeAffinity.Required != nil {
		fits, err := schedulingcorev1.MatchNodeSelectorTerms(node, volume.Spec.NodeAffinity.Required)
		if err != nil || !fits {
			return fmt.Sprintf("cannot reach volume %s (its node affinity)", volume.Name)
		}
	}
	return ""
}

func (n nodeLoss) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.Description{
		Action: fmt.Sprintf("taint node %s, then delete pod %s without grace period", n.name, target.Pod),
		Revert: "untaint node " + n.name,
	}
}

package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target/paging"
)

// controlPlane are the labels of nodes without which the cluster could not be operated.
var controlPlane = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/etcd",
}

// mayLose refuses to switch off a node by which the fault is measured or reverted, or on which the
// cluster depends.
func (p powerLoss) mayLose(ctx context.Context, node *corev1.Node) error {
	const field = "spec.action.nodeLoss.node"
	for _, label := range controlPlane {
		if _, is := node.Labels[label]; is {
			return problem.Unsupported("%s: node %s is one of the control plane (label %s)", field, p.name, label)
		}
	}
	for key, fault := range node.Annotations {
		uid, is := strings.CutPrefix(key, v1alpha1.AnnotationPowerPrefix)
		if is && uid != string(p.Owner.UID) {
			return problem.NotYet("%s: RedisFault %s has switched node %s off, and not on yet", field, fault, p.name)
		}
	}
	if !ready(node) {
		return problem.NotYet("%s: node %s is not ready: waiting until it is", field, p.name)
	}
	home, err := p.home(ctx)
	if err != nil {
		return err
	}
	if home == p.name {
		return problem.Unsupported("%s: the operator runs on node %s, and could not switch it on again", field, p.name)
	}
	on, _, err := p.podsOn(ctx)
	if err != nil {
		return err
	}
	namespaces := map[string]bool{}
	for i := range on {
		if of := on[i].Namespace; !namespaces[of] {
			namespaces[of] = true
			if err := guard.Unprotected(ctx, p.Live, of); err != nil {
				return err
			}
		}
		if err := keepsLoad(field, &on[i]); err != nil {
			return err
		}
	}
	return nil
}

// keepsLoad refuses a node with a load pod.
func keepsLoad(field string, pod *corev1.Pod) error {
	name := pod.Labels[v1alpha1.LabelLoadTest]
	if name == "" {
		return nil
	}
	which := fmt.Sprintf("%s: pod %s of RedisLoadTest %s/%s is on node %s", field, pod.Name, pod.Namespace, name,
		pod.Spec.NodeName)
	if pod.DeletionTimestamp != nil {
		return problem.NotYet("%s, and being deleted: waiting until it is gone", which)
	}
	return problem.Unsupported("%s, and would be lost with it: keep load pods off it by spec.pods", which)
}

// home is the node of the operator; "" = it is not known.
func (p powerLoss) home(ctx context.Context) (string, error) {
	if p.OwnPod.Name == "" || p.OwnPod.Namespace == "" {
		return "", nil
	}
	own := &corev1.Pod{}
	if err := p.Live.Get(ctx, p.OwnPod, own); err != nil {
		return "", fmt.Errorf("read the operator's own pod %s: %w", p.OwnPod, err)
	}
	return own.Spec.NodeName, nil
}

// podsOn lists the pods on the node that have not ended. all is false where those of other
// namespaces may not be listed.
func (p powerLoss) podsOn(ctx context.Context) (found []corev1.Pod, all bool, err error) {
	list := func(options ...client.ListOption) error {
		var page corev1.PodList
		return paging.Each(ctx, p.Live, &page, func() bool {
			found = append(found, page.Items...)
			page.Items = nil
			return true
		}, append(options, client.MatchingFields{"spec.nodeName": p.name})...)
	}
	err = list()
	all = !apierrors.IsForbidden(err)
	if !all {
		found = nil
		err = list(client.InNamespace(p.Namespace))
	}
	if err != nil {
		return nil, all, fmt.Errorf("list the pods on node %s: %w", p.name, err)
	}
	return slices.DeleteFunc(found, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}), all, nil
}

// Advise says what else the node has.
func (p powerLoss) Advise(ctx context.Context, targets []v1alpha1.FaultTarget) []string {
	var said []string
	if home, err := p.home(ctx); err == nil && home == "" {
		said = append(said, fmt.Sprintf("the operator does not know its own pod: it must not run on node %s", p.name))
	}
	on, all, err := p.podsOn(ctx)
	if err != nil {
		return append(said, fmt.Sprintf("it is not known what else is on node %s: %v", p.name, err))
	}
	var here []string          // in the namespace of the fault: by name, as a sentinel may be among them
	others := map[string]int{} // by their namespaces
	for i := range on {
		switch isTarget := func(t v1alpha1.FaultTarget) bool { return t.Pod == on[i].Name }; {
		case on[i].Namespace != p.Namespace:
			others[on[i].Namespace]++
		case !slices.ContainsFunc(targets, isTarget):
			here = append(here, on[i].Name)
		}
	}
	if len(here) > 0 {
		said = append(said, fmt.Sprintf("node %s has more than the targets, which loses its power as well: %s", p.name,
			listed(here)))
	}
	if len(others) > 0 {
		said = append(said, fmt.Sprintf("node %s has pods of other namespaces, which lose their power as well: %s", p.name,
			counted(others)))
	}
	if !all {
		said = append(said, fmt.Sprintf("the operator may not list pods of other namespaces: those on node %s lose "+
			"their power as well", p.name))
	}
	return said
}

// counted are numbers of pods by namespace, in words.
func counted(pods map[string]int) string {
	var parts []string
	for namespace, n := range pods {
		parts = append(parts, fmt.Sprintf("%s of %s", format.Plural(n, "pod"), namespace))
	}
	return listed(parts)
}

// listed are the first of some names.
func listed(names []string) string {
	slices.Sort(names)
	if more := len(names) - mostListed; more > 0 {
		names = append(names[:mostListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// mostListed is how many a warning names.
const mostListed = 8

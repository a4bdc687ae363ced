package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/target/paging"
)

// zoneLoss taints all nodes of a zone and deletes the target's pods on them without grace. Which
// nodes it has tainted is on the nodes themselves: those of a zone come and go.
type zoneLoss struct {
	contract.Deps
	zone  string
	lasts time.Duration
}

func newZoneLoss(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	return zoneLoss{
		Deps:  deps,
		zone:  ptr.Deref(spec.Action.ZoneLoss, v1alpha1.ZoneLoss{}).Zone,
		lasts: spec.Stays(),
	}
}

func (z zoneLoss) Traits() contract.Traits {
	return contract.Traits{
		Lasts:      z.lasts,
		Place:      contract.Place{Zone: z.zone},
		EndsServer: true,
		Abrupt:     true,
		NewPod:     true,
		Silences:   true,
		WholePod:   true,
		Taints:     true,
	}
}

func (z zoneLoss) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := z.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if err := pods.RequireController(pod); err != nil {
		return err
	}
	if err := contract.Save(target, pods.ReplacedRecord{Controller: pods.ControllerOf(pod)}); err != nil {
		return err
	}
	return RequireRepelled(z.Deps, pod)
}

// nodes are those of the zone.
func (z zoneLoss) nodes(ctx context.Context) ([]corev1.Node, error) {
	return z.list(ctx, client.MatchingLabels{corev1.LabelTopologyZone: z.zone})
}

func (z zoneLoss) list(ctx context.Context, which ...client.ListOption) ([]corev1.Node, error) {
	var page corev1.NodeList
	var all []corev1.Node
	err := paging.Each(ctx, z.Live, &page, func() bool {
		all = append(all, page.Items...)
		page.Items = nil
		return true
	}, which...)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return all, nil
}

func (z zoneLoss) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	return pods.Ended(ctx, z.Deps, target)
}

// Prepare keeps new pods off all nodes of the zone, before the first pod is deleted.
func (z zoneLoss) Prepare(
	ctx context.Context, _ *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	nodes, err := z.nodes(ctx)
	if err != nil {
		return contract.Progress{}, err
	}
	var waits contract.Progress
	for i := range nodes {
		if taintedBy(&nodes[i], z.Deps) {
			continue
		}
		progress, err := Taint(ctx, z.Deps, nodes[i].Name)
		if err != nil {
			return contract.Progress{}, err
		}
		if !progress.Complete() {
			waits = progress
		}
	}
	return waits, nil
}

func (z zoneLoss) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[pods.ReplacedRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	ended, err := pods.Ended(ctx, z.Deps, target)
	if ended || err != nil {
		return contract.Progress{}, err
	}
	progress, err := z.Prepare(ctx, target)
	if err != nil || !progress.Complete() {
		return progress, err
	}
	return contract.Progress{}, pods.RemoveTarget(ctx, z.Deps, target)
}

// Revert removes the fault's taint from every node that has it, wherever its label says it is now.
func (z zoneLoss) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[pods.ReplacedRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	nodes, err := z.list(ctx)
	if err != nil {
		return contract.Progress{}, err
	}
	var waits contract.Progress
	for i := range nodes {
		if _, marked := nodes[i].Annotations[annotationOf(z.Deps)]; !marked && !taintedBy(&nodes[i], z.Deps) {
			continue
		}
		progress, err := Untaint(ctx, z.Deps, nodes[i].Name)
		if err != nil {
			return contract.Progress{}, err
		}
		if !progress.Complete() {
			waits = progress
		}
	}
	return waits, nil
}

// ManualRevertCommand removes the taint from the nodes of the zone; a node that has none of it is no
// error of the first command, and is one of the second that can be ignored.
func (z zoneLoss) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	return fmt.Sprintf("kubectl annotate nodes -l %[1]s=%[2]s %[3]s- && kubectl taint nodes -l %[1]s=%[2]s %[4]s:%[5]s-",
		corev1.LabelTopologyZone, z.zone, annotationOf(z.Deps), v1alpha1.TaintFault, corev1.TaintEffectNoSchedule)
}

// Effect is confirmed once the pod was deleted, its node has the taint, and its replacement is in
// another zone, or on no node yet.
func (z zoneLoss) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	ended, err := pods.Ended(ctx, z.Deps, target)
	if err != nil {
		return contract.Unseen(err)
	}
	if !ended {
		return contract.NotObserved("pod %s (%s) still runs on node %s", target.Pod, target.UID, target.Node)
	}
	record, _, err := contract.Load[pods.ReplacedRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	effect, evidence := KeptOff(ctx, z.Deps, target, record.Controller, target.Node)
	if effect != v1alpha1.EffectConfirmed {
		return effect, evidence
	}
	found, err := pods.Replacements(ctx, z.Deps, target, record.Controller)
	if err != nil {
		return contract.Unseen(err)
	}
	for i := range found {
		if found[i].Spec.NodeName == "" {
			continue
		}
		node, err := Read(ctx, z.Deps, found[i].Spec.NodeName)
		if err != nil {
			return contract.Unseen(err)
		}
		if node.Labels[corev1.LabelTopologyZone] == z.zone {
			return contract.NotObserved("the replacement of pod %s was scheduled to node %s of zone %s", target.Pod,
				node.Name, z.zone)
		}
	}
	return effect, evidence
}

// Advise says which data have no copy elsewhere, and which pods could not move to another zone.
func (z zoneLoss) Advise(ctx context.Context, targets []v1alpha1.FaultTarget) []string {
	var said []string
	for _, copies := range guard.Wholly(targets) {
		said = append(said, fmt.Sprintf("zone %s has every copy of the data of %s: nobody serves them until one comes up elsewhere",
			z.zone, strings.Join(copies, ", ")))
	}
	nodes, err := z.nodes(ctx)
	if err != nil {
		return append(said, fmt.Sprintf("it is not known where the replacements could go: %v", err))
	}
	lost := make([]string, len(nodes))
	for i := range nodes {
		lost[i] = nodes[i].Name
	}
	for i := range targets {
		pod, err := z.Pod(ctx, targets[i].Pod)
		if err != nil { // it is replaced just now
			continue
		}
		if err := RequireOtherNode(ctx, z.Deps, pod, nil, lost...); err != nil {
			said = append(said, fmt.Sprintf("pod %s is away until the zone is back: %v", pod.Name, err))
		}
	}
	return said
}

func (z zoneLoss) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(pods.ReplacedRecord) contract.Description {
		return contract.Description{
			Action: fmt.Sprintf("taint the nodes of zone %s, then delete pod %s without grace period", z.zone, target.Pod),
			Revert: fmt.Sprintf("untaint the nodes of zone %s", z.zone),
		}
	})
}

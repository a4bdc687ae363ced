package node

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/problem"
)

const (
	// offWithin is how long it may take until a node that is switched off is not ready.
	offWithin = 15 * time.Minute
	// onWithin is how long it may take until a node that is switched on is ready.
	onWithin = 10 * time.Minute
	// onAgain is when a node that is not ready yet is switched on again.
	onAgain = 30 * time.Second
	// hookWaits is how long after the time at which the fault has reverted at the latest the hook is to
	// switch the node on by itself.
	hookWaits = 10 * time.Minute
)

// powerLoss has a node switched off by the power hook, and on again.
//
// The node is marked by an annotation before the hook is asked, and until the node is ready again:
// whoever finds the mark, in whatever process, has it switched on.
type powerLoss struct {
	contract.Deps
	name  string
	lasts time.Duration
}

// powerRecord is what a loss of power is reverted by.
type powerRecord struct {
	Node       string `json:"node"`
	ProviderID string `json:"providerID,omitempty"`
	// why the hook does not switch it off; it is not asked again
	Refused string `json:"refused,omitempty"`
	// of the revert: when the hook was last asked to switch it on, and when the kubelet had last renewed its lease
	OnAt  *time.Time `json:"onAt,omitempty"`
	Lease string     `json:"lease,omitempty"`
}

func (p powerLoss) Traits() contract.Traits {
	return contract.Traits{
		Lasts:      p.lasts,
		Takes:      offWithin,
		Step:       onWithin,
		Place:      contract.Place{Node: p.name},
		EndsServer: true,
		Abrupt:     true,
		NewPod:     true, // or the same one with another address
		Silences:   true,
		WholePod:   true,
		Taints:     true,
	}
}

// Preflight refuses nodes whose loss would end more than was asked for, or could not be reverted.
func (p powerLoss) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if p.Power == nil {
		return problem.Unsupported("%s: Power needs a power hook, and none is configured", methodField)
	}
	pod, err := p.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if target.Node != p.name {
		return elsewhere(target, p.name)
	}
	if err := pods.RequireController(pod); err != nil {
		return err
	}
	node, err := Read(ctx, p.Deps, p.name)
	if err != nil {
		return err
	}
	if err := p.mayLose(ctx, node); err != nil {
		return err
	}
	return contract.Save(target, powerRecord{Node: p.name, ProviderID: node.Spec.ProviderID})
}

const methodField = "spec.action.nodeLoss.method"

// Begun reports whether the node is marked: the hook may have been asked.
func (p powerLoss) Begun(ctx context.Context, _ *v1alpha1.FaultTarget) (bool, error) {
	node, err := p.find(ctx)
	return err == nil && node != nil && p.marked(node), err
}

// Inject marks the node, has it switched off, and waits until it is not ready.
func (p powerLoss) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[powerRecord](target)
	if err != nil || !recorded {
		return contract.Progress{}, err
	}
	if record.Refused != "" {
		return contract.Progress{}, problem.Unsupported("%s: %s", methodField, record.Refused)
	}
	if target.InjectedAt == nil {
		ended, err := pods.Ended(ctx, p.Deps, target)
		if ended || err != nil {
			return contract.Progress{}, err
		}
		if err := p.switchOff(ctx, target, record); err != nil {
			return contract.Progress{}, err
		}
	}
	node, err := p.find(ctx)
	if err != nil || node == nil || !ready(node) { // a cloud may remove the node with its machine
		return contract.Progress{}, err
	}
	return contract.Underway("node %s was switched off, and is still ready", p.name), nil
}

// switchOff asks the hook to switch the node off. If it certainly has not, nothing is left.
func (p powerLoss) switchOff(
	ctx context.Context, target *v1alpha1.FaultTarget, record powerRecord,
) error {
	node, err := Read(ctx, p.Deps, p.name)
	if err != nil {
		return err
	}
	asked := p.marked(node) // perhaps, by an earlier call
	if !asked {
		if err := p.mayLose(ctx, node); err != nil {
			return err
		}
		if err := p.mark(ctx, node); err != nil {
			return err
		}
	}
	off := p.request(record, powerhook.Off)
	off.Deadline = powerhook.Deadline(time.Now().Add(offWithin + p.lasts + hookWaits))
	err = p.Power.Switch(ctx, off)
	if err == nil || !powerhook.Undone(err) {
		return err
	}
	if powerhook.Refuses(err) {
		record.Refused = err.Error()
		if unsaved := contract.Save(target, record); unsaved != nil {
			return unsaved
		}
	}
	if !asked {
		if left := p.unmark(ctx); left != nil { // then the revert switches it on for nothing
			return fmt.Errorf("%w; %w", err, left)
		}
	}
	return err
}

// Revert has the node switched on, again and again until it is back, and removes the mark.
func (p powerLoss) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[powerRecord](target)
	if err != nil || !recorded {
		return contract.Progress{}, err
	}
	node, err := p.find(ctx)
	if err != nil {
		return contract.Progress{}, err
	}
	// One that was removed with its machine, and is in the cluster again, has no mark and its power.
	if node != nil && !p.marked(node) || node == nil && target.InjectedAt == nil {
		return contract.Progress{}, nil
	}
	asks := record.OnAt == nil || time.Since(*record.OnAt) >= onAgain
	if asks {
		record, err = p.switchOn(ctx, record)
	}
	back := false
	if err == nil {
		back, err = p.isBack(ctx, target, record)
	}
	switch {
	case powerhook.Gone(err), back:
		return contract.Progress{}, p.unmark(ctx)
	case err == nil && asks:
		err = contract.Save(target, record)
	}
	return contract.Underway("node %s was switched on, and is not ready yet", p.name), err
}

// switchOn asks the hook, and returns the record of that.
func (p powerLoss) switchOn(ctx context.Context, record powerRecord) (powerRecord, error) {
	if p.Power == nil {
		return record, fmt.Errorf("switch node %s on: no power hook is configured any more", p.name)
	}
	err := p.Power.Switch(ctx, p.request(record, powerhook.On))
	if err == nil {
		record.OnAt = new(time.Now())
		record.Lease, err = p.lease(ctx)
	}
	return record, err
}

// isBack reports whether the node is ready. One whose machine has just stopped counts as ready for
// the best part of a minute: unless it was seen not to be, its kubelet must have renewed its lease.
func (p powerLoss) isBack(
	ctx context.Context, target *v1alpha1.FaultTarget, record powerRecord,
) (bool, error) {
	node, err := p.find(ctx)
	if err != nil || node == nil || !ready(node) {
		return false, err
	}
	if target.ActiveAt != nil {
		return true, nil
	}
	lease, err := p.lease(ctx)
	return lease != record.Lease || lease == "", err
}

// ManualRevertCommand switches nothing on: that only a person with access to the machine does.
func (p powerLoss) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	return fmt.Sprintf("switch on the machine of node %s, wait until the node is ready, and remove the mark: "+
		"kubectl annotate node %s %s-", p.name, p.name, p.annotation())
}

// Effect is confirmed while the node is not ready.
func (p powerLoss) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	if _, _, err := contract.Load[powerRecord](target); err != nil {
		return contract.Unseen(err)
	}
	node, err := p.find(ctx)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case node == nil:
		return contract.Confirmed("node %s, which was switched off, is not in the cluster any more", p.name)
	case ready(node):
		return contract.NotObserved("node %s is ready", p.name)
	}
	text := "it has no condition Ready"
	if c := readiness(node); c != nil {
		text = fmt.Sprintf("%s since %s", c.Reason, c.LastTransitionTime.UTC().Format(time.TimeOnly))
	}
	return contract.Confirmed("node %s is not ready (%s)", p.name, text)
}

// Follow reports when the cluster has noticed that the node is off, and that it is back.
func (p powerLoss) Follow(
	ctx context.Context, target *v1alpha1.FaultTarget,
) []contract.Sighting {
	node, err := p.find(ctx)
	if err != nil || node == nil || target.InjectedAt == nil {
		return nil
	}
	c := readiness(node)
	if c == nil || c.LastTransitionTime.Time.Before(target.InjectedAt.Truncate(time.Second)) {
		return nil
	}
	event := contract.EventNodeNotReady
	if c.Status == corev1.ConditionTrue {
		event = contract.EventNodeReady
	}
	return []contract.Sighting{{
		At:      c.LastTransitionTime.Time,
		Coarse:  true,
		Event:   event,
		Object:  p.name,
		Message: c.Reason,
	}}
}

func (p powerLoss) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(r powerRecord) contract.Description {
		machine := "node " + r.Node
		if r.ProviderID != "" {
			machine += " (" + r.ProviderID + ")"
		}
		return contract.Description{
			Action: fmt.Sprintf("have the power hook switch off %s, with pod %s and all other pods on it, "+
				"and wait until it is not ready", machine, target.Pod),
			Revert: "have it switched on, again and again until the node is ready",
			SelfEnding: fmt.Sprintf("the hook is asked to switch it on by itself %s after it was switched off, if "+
				"it can", format.Duration(offWithin+p.lasts+hookWaits)),
		}
	})
}

func (p powerLoss) request(r powerRecord, power powerhook.Power) powerhook.Request {
	return powerhook.Request{
		Node:       r.Node,
		ProviderID: r.ProviderID,
		Power:      power,
		Fault: powerhook.Fault{
			Namespace: p.Namespace,
			Name:      p.Owner.Name,
			UID:       string(p.Owner.UID),
		},
	}
}

func (p powerLoss) annotation() string {
	return v1alpha1.AnnotationPowerPrefix + string(p.Owner.UID)
}

func (p powerLoss) marked(node *corev1.Node) bool {
	_, marked := node.Annotations[p.annotation()]
	return marked
}

// mark is tried again where the kubelet has changed the node meanwhile.
func (p powerLoss) mark(ctx context.Context, node *corev1.Node) error {
	return p.annotate(ctx, node, func(node *corev1.Node) {
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[p.annotation()] = p.Namespace + "/" + p.Owner.Name
	})
}

func (p powerLoss) unmark(ctx context.Context) error {
	node, err := p.find(ctx)
	if err != nil || node == nil || !p.marked(node) {
		return err
	}
	err = p.annotate(ctx, node, func(node *corev1.Node) { delete(node.Annotations, p.annotation()) })
	return client.IgnoreNotFound(err)
}

// annotate changes the annotations of a node. It needs no lock: each fault has an annotation of its
// own, and a merge patch leaves all others.
func (p powerLoss) annotate(ctx context.Context, node *corev1.Node, change func(*corev1.Node)) error {
	before := node.DeepCopy()
	change(node)
	if err := p.Cluster.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch node %s: %w", before.Name, err)
	}
	return nil
}

// find reads the node; nil = it is not in the cluster.
func (p powerLoss) find(ctx context.Context) (*corev1.Node, error) {
	node, err := Read(ctx, p.Deps, p.name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return node, err
}

// lease is when the kubelet of the node has renewed its lease; "" = it has none.
func (p powerLoss) lease(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: p.name}, lease)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read the lease of node %s: %w", p.name, err)
	}
	if lease.Spec.RenewTime == nil {
		return "", nil
	}
	return lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano), nil
}

// readiness is the condition Ready of a node; nil = it has none.
func readiness(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

func ready(node *corev1.Node) bool {
	c := readiness(node)
	return c != nil && c.Status == corev1.ConditionTrue
}

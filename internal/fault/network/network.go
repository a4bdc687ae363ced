// Package network implements the faults of the network: packets of a pod are dropped or delayed by
// rules in its own network namespace (package netfault), which the kernel lifts by itself unless they are
// renewed.
package network

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/peers"
	"github.com/redquake/redquake/internal/netfault"
	"github.com/redquake/redquake/internal/problem"
)

const (
	// renewEvery leaves room for two calls that fail before the kernel lifts the rules.
	renewEvery = 2 * time.Second
	// renewsWithin is how long a renewal may take, which takes some milliseconds: a kubelet that does
	// not answer must not hold up the next one.
	renewsWithin = renewEvery - 500*time.Millisecond
	// startsWithin is how long our container may take to start, its image included.
	startsWithin = 2 * time.Minute
)

// Kinds are the faults of the network.
var Kinds = contract.Kinds{
	v1alpha1.FaultNetworkPartition: func(
		spec *v1alpha1.RedisFaultSpec, deps contract.Deps,
	) contract.Injector {
		n := network{Deps: deps, spec: spec, share: netfault.Whole, field: "spec.action.networkPartition"}
		if p := spec.Action.NetworkPartition; p != nil {
			n.peers, n.operator, n.direction = p.Peers, p.Operator, p.Direction
		}
		return n
	},
	v1alpha1.FaultNetworkLoss: func(
		spec *v1alpha1.RedisFaultSpec, deps contract.Deps,
	) contract.Injector {
		n := network{Deps: deps, spec: spec, field: "spec.action.networkLoss"}
		if l := spec.Action.NetworkLoss; l != nil {
			n.peers, n.operator, n.direction = l.Peers, l.Operator, l.Direction
			n.share = max(1, int(l.Loss.Share()*netfault.Whole+0.5))
		}
		return n
	},
	v1alpha1.FaultNetworkDelay: func(
		spec *v1alpha1.RedisFaultSpec, deps contract.Deps,
	) contract.Injector {
		n := network{
			Deps: deps, spec: spec, share: netfault.Whole, field: "spec.action.networkDelay",
			direction: v1alpha1.DirectionOut,
		}
		if d := spec.Action.NetworkDelay; d != nil {
			n.peers = d.Peers
			n.delay = netfault.Delay{
				Latency:     d.Latency.Duration,
				Jitter:      ptr.Deref(d.Jitter, metav1.Duration{}).Duration,
				Correlation: int(d.Correlation.Share()*netfault.Whole + 0.5),
			}
		}
		return n
	},
}

// network drops or delays packets of a pod.
type network struct {
	contract.Deps
	spec      *v1alpha1.RedisFaultSpec
	field     string // of the action
	peers     []v1alpha1.NetworkPeer
	operator  *v1alpha1.OperatorReference // of PeerOperator
	direction v1alpha1.NetworkDirection
	share     int // of netfault.Whole packets
	delay     netfault.Delay
}

// record is what a fault of the network is reverted by.
type record struct {
	Rule string `json:"rule"` // the ID of its rules
	// the pods whose packets are dropped, or are not although all others are: as of the preflight
	Hit    addresses `json:"hit,omitempty"`
	Spared addresses `json:"spared,omitempty"`
	// those of the Redis' operator whose packets are dropped
	Operator addresses `json:"operator,omitempty"`
	// since when our container cannot be reached to revert it
	Unreached *metav1.MicroTime `json:"unreached,omitempty"`
}

func (n network) Traits() contract.Traits {
	server, wholePod := peers.Silences(&n.spec.Action)
	return contract.Traits{
		Lasts:    n.spec.Stays(),
		Takes:    startsWithin,
		Silences: server,
		WholePod: wholePod,
		Separate: true,
		Exact:    true,
		Renews:   renewEvery,
	}
}

func (n network) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := n.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if pod.Spec.HostNetwork {
		return problem.Unsupported(
			"pod %s has spec.hostNetwork: its network is that of node %s, and so would be the rules", pod.Name,
			pod.Spec.NodeName)
	}
	if os := pod.Spec.OS; os != nil && os.Name != corev1.Linux {
		return problem.Unsupported("pod %s runs on %s: the rules need Linux", pod.Name, os.Name)
	}
	if found := n.find(pod); !found.present && found.starts == "" {
		if err := n.add(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
	}
	hit, spared, operator, err := n.choose(ctx, target)
	if err != nil {
		return err
	}
	return contract.Save(target, record{
		Rule:     n.newRule(target),
		Hit:      hit,
		Spared:   spared,
		Operator: operator,
	})
}

// newRule is the ID of the rules of a target by a record that is made now. Those that were released
// are not set again: each record has its own.
func (n network) newRule(target *v1alpha1.FaultTarget) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", n.Owner.UID, target.UID, time.Now().UnixNano()))
	return hex.EncodeToString(sum[:8])
}

func (n network) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	r, pod, err := n.recall(ctx, target)
	if err != nil || pod == nil {
		return false, err
	}
	state, err := n.state(ctx, pod, r.Rule)
	return state.Exists, err
}

// Prepare has our container run in the pod of a target.
func (n network) Prepare(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	pod, err := n.podOf(ctx, target)
	if err != nil || pod == nil {
		return contract.Progress{}, err
	}
	container, progress, err := n.enter(ctx, pod)
	if err != nil || !progress.Complete() || n.delay.Latency == 0 {
		return progress, err
	}
	r, _, err := n.recall(ctx, target)
	if err != nil {
		return contract.Progress{}, err
	}
	rule, err := n.rule(ctx, target, pod, r)
	if err != nil {
		return contract.Progress{}, err
	}
	state, err := n.run(ctx, pod.Name, container, netfault.TryArguments(rule)...)
	return contract.Progress{}, errors.Join(err, n.unsupported(state, pod))
}

// unsupported is why the kernel of a node cannot do what the rules say; nil where it can.
func (n network) unsupported(state netfault.State, pod *corev1.Pod) error {
	if state.Unsupported == "" {
		return nil
	}
	return problem.Unsupported("%s: packets of pod %s cannot be delayed on node %s: %s", n.field, pod.Name,
		pod.Spec.NodeName, state.Unsupported)
}

// Inject sets the rules. Where a process has set them that has ended before it could store that, and
// the kernel has lifted them, the fault is over.
func (n network) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	r, pod, err := n.recall(ctx, target)
	if err != nil || pod == nil {
		return contract.Progress{}, err
	}
	container, progress, err := n.enter(ctx, pod)
	if err != nil || !progress.Complete() {
		return progress, err
	}
	rule, err := n.rule(ctx, target, pod, r)
	if err != nil {
		return contract.Progress{}, err
	}
	state, err := n.run(ctx, pod.Name, container, netfault.HoldArguments(rule)...)
	if err == nil && state.Released {
		err = fmt.Errorf("the rules of pod %s were released meanwhile", pod.Name)
	}
	return contract.Progress{}, errors.Join(err, n.unsupported(state, pod))
}

// Renew goes on with the rules, with the addresses that the peers have now. Rules that are not
// there any more, as the network of the pod was made anew, or that the kernel has lifted, are not
// set again: the fault has ended.
func (n network) Renew(ctx context.Context, target *v1alpha1.FaultTarget) error {
	ctx, cancel := context.WithTimeout(ctx, renewsWithin)
	defer cancel()
	r, pod, err := n.recall(ctx, target)
	if err != nil || pod == nil {
		return err
	}
	found := n.find(pod)
	if found.name == "" {
		return fmt.Errorf("no container of ours runs in pod %s any more", pod.Name)
	}
	rule, err := n.rule(ctx, target, pod, r)
	if err != nil {
		return err
	}
	_, err = n.run(ctx, pod.Name, found.name, netfault.RenewArguments(rule)...)
	return err
}

// Revert removes the rules. Where our container cannot be reached, the kernel does: no rule is
// renewed any more.
func (n network) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	r, recorded, err := contract.Load[record](target)
	if err != nil || !recorded {
		return contract.Progress{}, err
	}
	pod, err := n.podOf(ctx, target)
	if err == nil && pod == nil {
		return contract.Progress{}, nil
	}
	if err == nil {
		found := n.find(pod)
		if found.all == 0 { // it was never there
			return contract.Progress{}, nil
		}
		err = errors.New("our container does not run")
		if found.name != "" {
			_, err = n.run(ctx, pod.Name, found.name, netfault.VerbRelease, r.Rule)
		}
	}
	if err == nil {
		return contract.Progress{}, nil
	}
	now := metav1.NowMicro()
	// what was noted before the injection, by a step back, says nothing of these rules
	if r.Unreached == nil || target.InjectedAt != nil && r.Unreached.Before(target.InjectedAt) {
		r.Unreached = &now
		if err := contract.Save(target, r); err != nil {
			return contract.Progress{}, err
		}
	}
	if now.Sub(r.Unreached.Time) > netfault.Longest {
		return contract.Progress{}, nil
	}
	return contract.Underway("the kernel lifts the rules in pod %s by %s at the latest, as %v", target.Pod,
		r.Unreached.Add(netfault.Longest).UTC().Format(time.TimeOnly), err), nil
}

// ManualRevertCommand ends what is left of the rules; they end by themselves, too.
func (n network) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	r, _, _ := contract.Load[record](target) // without one there is nothing to end
	return fmt.Sprintf("kubectl -n %s exec %s -c %s0 -- %s %s %s", n.Namespace, target.Pod, containers,
		program, netfault.VerbRelease, r.Rule)
}

// recall is the record of a target, and its pod; nil = there is no record, or the pod was deleted or
// replaced.
func (n network) recall(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (r record, pod *corev1.Pod, err error) {
	r, recorded, err := contract.Load[record](target)
	if err == nil && recorded {
		pod, err = n.podOf(ctx, target)
	}
	return r, pod, err
}

// podOf is the pod of a target; nil = it was deleted or replaced.
func (n network) podOf(ctx context.Context, target *v1alpha1.FaultTarget) (*corev1.Pod, error) {
	pod, err := n.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	case string(pod.UID) != target.UID:
		return nil, nil //nolint:nilnil // it was replaced
	}
	return pod, nil
}

// state is what the kernel does in a pod by the rules with an ID.
func (n network) state(
	ctx context.Context, pod *corev1.Pod, rule string,
) (netfault.State, error) {
	found := n.find(pod)
	if found.name == "" {
		return netfault.State{}, nil
	}
	return n.run(ctx, pod.Name, found.name, netfault.VerbShow, rule)
}

package network

import (
	"context"
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/netfault"
)

// Effect is what the kernel counts: packets that the rules have dropped or delayed.
func (n network) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	state, effect, evidence := n.look(ctx, target)
	if effect != v1alpha1.EffectConfirmed {
		return effect, evidence
	}
	if state.DroppedIn+state.DroppedOut == 0 {
		return contract.Inconclusive("%s; no packet of its peers was %s so far", evidence, n.done())
	}
	if n.delay.Latency > 0 {
		return contract.Confirmed("the kernel has delayed %d packets that pod %s sent to its peers; %s",
			state.DroppedOut, target.Pod, evidence)
	}
	return contract.Confirmed(
		"the kernel has dropped %d of %d packets that its peers sent to pod %s, and %d of %d that it sent "+
			"to them; %s", state.DroppedIn, state.SeenIn, target.Pod, state.DroppedOut, state.SeenOut, evidence)
}

// done is what becomes of packets.
func (n network) done() string {
	if n.delay.Latency > 0 {
		return "delayed"
	}
	return "dropped"
}

// Held reports whether the rules are in force.
func (n network) Held(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	_, effect, evidence := n.look(ctx, target)
	return effect, evidence
}

func (n network) look(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (netfault.State, v1alpha1.Effect, string) {
	saw := func(effect v1alpha1.Effect, evidence string) (netfault.State, v1alpha1.Effect, string) {
		return netfault.State{}, effect, evidence
	}
	r, recorded, err := contract.Load[record](target)
	if err != nil {
		return saw(contract.Unseen(err))
	}
	if !recorded {
		return saw(contract.NotObserved("pod %s has no record", target.Pod))
	}
	pod, err := n.podOf(ctx, target)
	if err != nil {
		return saw(contract.Unseen(err))
	}
	if pod == nil {
		return saw(contract.NotObserved("pod %s (%s) was deleted, and its network with it", target.Pod,
			target.UID))
	}
	if n.find(pod).name == "" {
		return saw(contract.NotObserved("no container of ours runs in pod %s: its network may be another one",
			target.Pod))
	}
	state, err := n.state(ctx, pod, r.Rule)
	switch {
	case err != nil:
		return saw(contract.Unseen(err))
	case !state.Exists:
		return saw(contract.NotObserved("pod %s has no such rules: its network was made anew", target.Pod))
	case state.Left == 0:
		return saw(contract.NotObserved("the kernel has lifted the rules in pod %s: they were not renewed in time",
			target.Pod))
	}
	effect, evidence := contract.Confirmed("rules %s of pod %s are in force", r.Rule, target.Pod)
	return state, effect, evidence
}

// Describe says what the rules drop.
func (n network) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(r record) contract.Description {
		return contract.Description{
			Action: fmt.Sprintf(
				"%s in pod %s, by rules that an ephemeral container sets; that stays in the pod, and sleeps",
				n.inWords(r), target.Pod),
			Revert: "remove the rules",
			SelfEnding: fmt.Sprintf("the kernel lifts the rules %s after they were last renewed",
				netfault.Longest),
		}
	})
}

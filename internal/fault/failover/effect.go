package failover

import (
	"context"
	"fmt"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
)

func (f failover) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	method, record, err := f.recorded(target)
	if err != nil {
		return contract.Unseen(err)
	}
	if method == nil {
		return v1alpha1.EffectInconclusive, "the target has no record of how to fail it over"
	}
	s, err := method.observe(ctx, target)
	before := record.Primary
	switch {
	case err != nil:
		return contract.Unseen(err)
	case s.phase == underWay, s.phase == stuck:
		return v1alpha1.EffectInconclusive, s.proof
	case s.phase == resting, s.primary == before:
		return v1alpha1.EffectNotObserved, "still the primary: " + s.proof
	}
	now, err := f.replication(ctx, s.primary)
	switch {
	case err != nil:
		return contract.Inconclusive("%s, but that does not answer: %v", s.proof, err)
	case now.Role != topology.Primary:
		return contract.Inconclusive("%s, but that calls itself a %s", s.proof,
			now.Role)
	}
	evidence := fmt.Sprintf("%s; it is at offset %d", s.proof, now.Offset)
	if old, err := f.replication(ctx, before); err == nil {
		evidence += fmt.Sprintf(", the old one, now a %s, at %d", old.Role, old.Offset)
	}
	return v1alpha1.EffectConfirmed, evidence + "; " + method.coordination(ctx, target)
}

// Events of a failover in addition to those that a witness reports for every fault.
const (
	EventFailoverStarted = "FailoverStarted" // the command was accepted
	// the old primary is a replica: the writes that it accepted until then are lost
	EventDemoted = "OldPrimaryDemoted"
)

// Follow implements contract.Follower. It also reports what a witness reports more exactly: a
// restart of the operator ends the witness.
func (f failover) Follow(ctx context.Context, target *v1alpha1.FaultTarget) []contract.Sighting {
	method, record, err := f.recorded(target)
	if err != nil || method == nil || target.InjectedAt == nil {
		return nil
	}
	seen := []contract.Sighting{
		{
			At:      target.InjectedAt.Time,
			Event:   EventFailoverStarted,
			Object:  target.Pod,
			Message: method.command(target),
		},
	}
	s, err := method.observe(ctx, target)
	before := record.Primary
	if err != nil || s.phase != promoted || s.primary == before {
		return seen
	}
	if !s.since.IsZero() {
		seen = append(seen, contract.Sighting{
			At:      s.since,
			Event:   contract.EventSwitched,
			Object:  "sentinels",
			Message: s.proof,
		})
	}
	seen = append(seen, contract.Sighting{
		At:      f.now(),
		Event:   contract.EventPromoted,
		Object:  f.nameOf(ctx, s.primary),
		Message: "seen: " + s.proof,
	})
	if old, err := f.replication(ctx, before); err == nil && old.Role == topology.Replica {
		seen = append(seen, contract.Sighting{
			At:      f.now(),
			Event:   EventDemoted,
			Object:  f.nameOf(ctx, before),
			Message: "seen: it replicates from " + old.Primary,
		})
	}
	return seen
}

// nameOf is the target's pod of an address: the pod has it, or a Service leads from it to the pod,
// or its host name begins with the pod's name, as in a StatefulSet. Where no pod is found it is the
// address.
func (f failover) nameOf(ctx context.Context, address string) string {
	pods, err := f.LatestPods(ctx)
	if err != nil {
		return address
	}
	first, _, _ := strings.Cut(address, ".")
	place := f.PlaceOf(ctx, address)
	for i := range pods {
		if pod := &pods[i]; pod.Name == first || pod.Status.PodIP != "" && f.Address(pod) == place {
			return pod.Name
		}
	}
	return address
}

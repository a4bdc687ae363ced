package failover

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	old, err := f.replication(ctx, before)
	if err == nil && old.Role == topology.Replica {
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
		pod := &pods[i]
		if pod.Name == first || pod.Status.PodIP != "" && f.Address(pod) == place {
			return pod.Name
		}
	}
	return address
}

func (f failover) Describe(target *v1alpha1.FaultTarget) contract.Description {
	method, record, err := f.recorded(target)
	if err != nil || method == nil {
		return contract.DescribeRecord(target, func(failoverRecord) contract.Description {
			return contract.Description{Action: fmt.Sprintf("nothing: %v", err)}
		})
	}
	d := contract.Description{
		Action:     fmt.Sprintf("%s; the primary is %s now", method.command(target), record.Primary),
		SelfEnding: "the new primary stays: there is no failback",
	}
	switch s := record.Sentinel; {
	case record.Replication != nil:
		d.Revert = "FAILOVER ABORT while it is not complete"
		d.SelfEnding = fmt.Sprintf("a failover that is not complete after %s is abandoned by the primary",
			f.timeout)
	case s != nil && s.Pause > 0:
		d.Revert = "CLIENT UNPAUSE"
		d.SelfEnding = fmt.Sprintf("the pause of writes ends after %s", s.Pause)
	}
	return d
}

// failoverRecord is the record of a failover. The failover has happened once the recorded primary
// is no longer the primary: so no operator process begins it twice.
type failoverRecord struct {
	Method v1alpha1.FailoverMethod `json:"method"` // never Auto
	// host:port of the primary, as the topology names it
	Primary     string             `json:"primary"`
	Cluster     *clusterRecord     `json:"cluster,omitempty"`
	Sentinel    *sentinelRecord    `json:"sentinel,omitempty"`
	Replication *replicationRecord `json:"replication,omitempty"`
}

// clusterRecord is what is recorded of a failover in a cluster beside what every failover records.
type clusterRecord struct {
	Node  string `json:"node"`  // ID of the primary
	Epoch uint64 `json:"epoch"` // config epoch: it grows with every failover
	// one that the shard serves: the node that owns it is the shard's primary
	Slot uint16 `json:"slot"`
	// host:port of the replica to promote, as it announced itself
	Replica string `json:"replica"`
	// host:port of the shard's other replicas, which are queried as well
	Others []string `json:"others,omitempty"`
}

// sentinelRecord is what is recorded of a failover through Sentinel beside what every failover
// records.
type sentinelRecord struct {
	MasterName string `json:"masterName"`
	// config epoch: it grows with every failover
	Epoch int64 `json:"epoch"`
	// host:port of the one that gets the command: it refuses a second
	Sentinel string `json:"sentinel"`
	// COORDINATED, where the sentinel supports it
	Option string `json:"option,omitempty"`
	// for how long writes are paused; 0 where they are not
	Pause time.Duration `json:"pauseNanoseconds,omitempty"`
	// whether the pause held until the old primary was demoted; nil until that is known
	Held *bool `json:"held,omitempty"`
}

// replicationRecord is what is recorded of a failover without sentinels beside what every failover
// records.
type replicationRecord struct {
	Replica string `json:"replica"` // host:port of the replica to promote, as it announced itself
	// The primary of each replica that is not to be promoted, by the replica's host:port. FAILOVER
	// does not change it: the replica must be pointed to the new primary.
	Follows map[string]string `json:"follows,omitempty"`
}

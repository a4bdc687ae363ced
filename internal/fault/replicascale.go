package fault

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/redis/topology"
)

// What a scaling shows beside the pods' own course.
const (
	eventReplicaAdded   = "ReplicaAdded"   // its pod was seen first
	eventReplicaSynced  = "ReplicaSynced"  // its primary holds it for online, and its pod is ready
	eventReplicaRemoved = "ReplicaRemoved" // its pod is gone, and no node of a cluster knows it
)

// defaultSyncTimeout is how long replicas may take where spec.action.replicaScale.syncTimeout says nothing.
const defaultSyncTimeout = 5 * time.Minute

// replicaScale changes the number of replicas of the StatefulSet that runs the selected server, waits until those that came are in sync, and
// takes it back. A StatefulSet adds and removes the pods with the highest ordinals: never is one removed that is a primary.
type replicaScale struct {
	Surroundings
	mode    v1alpha1.SelectMode
	by      int32
	timeout time.Duration // for each direction
	lasts   time.Duration
	now     func() time.Time
}

func newReplicaScale(spec *v1alpha1.RedisFaultSpec, around Surroundings) Injector {
	s := &replicaScale{Surroundings: around, mode: spec.Select.Mode, lasts: durationOf(spec), now: time.Now}
	if spec.Action.ReplicaScale != nil {
		s.by, s.timeout = spec.Action.ReplicaScale.By, spec.Action.ReplicaScale.SyncTimeout.Duration
	}
	s.timeout = cmp.Or(s.timeout, defaultSyncTimeout)
	return s
}

func (s *replicaScale) Traits() Traits { return Traits{Takes: s.timeout + time.Minute, Lasts: s.lasts} }

func (s *replicaScale) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if s.mode != "" && s.mode != v1alpha1.SelectOne {
		return invalid("spec.select.mode: %s: ReplicaScale scales the StatefulSet of one server: use One, and a fault for each StatefulSet", s.mode)
	}
	if s.by == 0 {
		return invalid("spec.action.replicaScale.by: 0 would change nothing")
	}
	plan, err := s.recordSet(ctx, target)
	if err != nil {
		return err
	}
	if err := s.recordPrimary(ctx, target); err != nil {
		return err
	}
	if s.by < 0 {
		return s.recordGoing(ctx, target, plan)
	}
	return nil
}

func (s *replicaScale) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	now, err := s.read(ctx, target)
	if err != nil {
		return false, err
	}
	return now.gone || now.replicas == now.want, nil
}

func (s *replicaScale) Inject(ctx context.Context, target *v1alpha1.FaultTarget) error {
	now, err := s.read(ctx, target)
	if err != nil || now.gone {
		return err
	}
	switch now.replicas {
	case now.want:
	case now.old:
		if target.InjectedAt != nil {
			return fmt.Errorf("StatefulSet %s was scaled to %d, and somebody else scaled it back to %d", now.name, now.want, now.old)
		}
		pod, err := s.pod(ctx, target.Pod)
		if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != target.UID {
			return nil // the server that was selected is gone before anything was done
		} else if err != nil {
			return err
		}
		if s.by < 0 {
			if err := s.primaryAmong(ctx, target, now); err != nil {
				return err
			}
		}
		if err := s.scale(ctx, now, now.want); err != nil {
			return err
		}
	default:
		return now.foreign()
	}
	return s.patiently(s.change(ctx, target, now, s.by > 0), s.beganAt(target))
}

func (s *replicaScale) Revert(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if len(target.Undo) == 0 {
		return nil // nothing was recorded, so nothing was done
	}
	now, err := s.read(ctx, target)
	if err != nil || now.gone {
		return err
	}
	since, begun := noted(target, undoingSince)
	switch {
	case now.replicas != now.want && now.replicas != now.old:
		return now.foreign()
	case now.replicas == now.old && !begun && target.InjectedAt == nil:
		return nil // never scaled
	case !begun: // the instant, and who the added nodes are, must be stored before anything is taken back
		note(target, undoingSince, s.now())
		s.recordAdded(ctx, target, now)
		return &InProgress{fmt.Sprintf("StatefulSet %s is to have %d replicas again", now.set.Name, now.old)}
	case now.replicas == now.want:
		if s.by > 0 {
			if s.recordAdded(ctx, target, now) {
				return &InProgress{"a node of the cluster has a new ID, which was recorded"}
			}
			if err := s.primaryAmong(ctx, target, now); err != nil {
				return s.patiently(err.Error(), since)
			}
		}
		if err := s.scale(ctx, now, now.old); err != nil {
			return s.patiently(err.Error(), since)
		}
	}
	return s.patiently(s.change(ctx, target, now, s.by < 0), since)
}

// change waits for what the StatefulSet brings or takes away, does what Redis needs beside, and says what is still missing; "" = nothing.
// What fails meanwhile is missing, too: it is tried again.
func (s *replicaScale) change(ctx context.Context, target *v1alpha1.FaultTarget, now *scaling, adding bool) string {
	work := s.takeOut
	if adding {
		work = s.bringIn
	}
	return work(ctx, target, now)
}

// patiently turns what is missing into an InProgress, or into an error once it is too late.
func (s *replicaScale) patiently(missing string, since time.Time) error {
	switch {
	case missing == "":
		return nil
	case s.now().Sub(since) > s.timeout:
		return fmt.Errorf("not complete within spec.action.replicaScale.syncTimeout, %s: %s", s.timeout, missing)
	}
	return &InProgress{missing}
}

// beganAt is when the first breaking call was sent; before it is known, when the record was made.
func (s *replicaScale) beganAt(target *v1alpha1.FaultTarget) time.Time {
	switch {
	case target.InjectedAt != nil:
		return target.InjectedAt.Time
	case target.IntendedAt != nil:
		return target.IntendedAt.Time
	}
	return s.now()
}

func (s *replicaScale) Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	now, err := s.read(ctx, target)
	switch {
	case err != nil:
		return v1alpha1.EffectInconclusive, err.Error()
	case now.gone:
		return v1alpha1.EffectInconclusive, fmt.Sprintf("StatefulSet %s is gone: something deleted it", now.name)
	case now.replicas == now.old:
		return v1alpha1.EffectNotObserved, fmt.Sprintf("StatefulSet %s still has %d replicas", now.name, now.old)
	}
	var evidence []string
	for _, name := range now.changed() {
		m := memberOf(target, name)
		if m.Address == "" {
			return v1alpha1.EffectNotObserved, fmt.Sprintf("StatefulSet %s has %d replicas, but %s has not come", now.name, now.replicas, name)
		}
		primary, said, err := s.primaryFor(ctx, target, now, m)
		if err != nil {
			return v1alpha1.EffectInconclusive, err.Error()
		}
		online := said.lists(name, m.Address)
		if online != (s.by > 0) {
			return v1alpha1.EffectNotObserved, fmt.Sprintf("primary %s lists %s: %t", primary, name, online)
		}
		verb := "lists"
		if s.by < 0 {
			verb = "no longer lists"
		}
		evidence = append(evidence, fmt.Sprintf("primary %s %s %s", primary, verb, name))
		if m.Slot == nil || len(evidence) == 1 {
			evidence[len(evidence)-1] += fmt.Sprintf(" (%s instead of %s)", plural(len(said.followers), "replica"), undoText(target, undoFollowers))
		}
	}
	return v1alpha1.EffectConfirmed, strings.Join(evidence, "; ")
}

// Follow implements Follower.
func (s *replicaScale) Follow(_ context.Context, target *v1alpha1.FaultTarget) []Sighting {
	var seen []Sighting
	for name, m := range members(target) {
		for _, one := range []Sighting{
			{At: m.Came, Event: eventReplicaAdded, Object: name},
			{At: m.Synced, Event: eventReplicaSynced, Object: name, Message: m.How},
			{At: m.Gone, Event: eventReplicaRemoved, Object: name},
		} {
			if !one.At.IsZero() {
				seen = append(seen, one)
			}
		}
	}
	return seen
}

func (s *replicaScale) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	command := fmt.Sprintf("kubectl -n %s scale statefulset %s --replicas=%s", s.Namespace, undoText(target, undoSet), undoText(target, undoReplicas))
	if undoText(target, undoSlot) == "" {
		return command
	}
	if s.by < 0 {
		return command + "; then, for a node that does not come back by itself, redis-cli CLUSTER MEET and CLUSTER REPLICATE"
	}
	for _, m := range members(target) {
		for _, id := range m.Nodes {
			command += "; then at every other node redis-cli CLUSTER FORGET " + id
		}
	}
	return command
}

// primaryAmong is the problem of a pod that would be removed and is a primary, or may be one. An added server that never came to be in sync and
// that nobody follows is none, whatever it says of itself.
func (s *replicaScale) primaryAmong(ctx context.Context, target *v1alpha1.FaultTarget, now *scaling) error {
	for _, name := range now.changed() {
		pod, err := s.pod(ctx, name)
		switch {
		case apierrors.IsNotFound(err), err == nil && pod.Status.PodIP == "":
			continue // no server that could be one
		case err != nil:
			return err
		}
		address, m := Address(pod), memberOf(target, name)
		said, err := s.info(ctx, address)
		switch {
		case err == nil && said.role == topology.Replica:
			continue
		case err == nil && s.by > 0 && m.Synced.IsZero() && len(said.followers) == 0 && !s.ownsSlots(ctx, address, said):
			continue
		case err == nil:
			return &lifecycle.Problem{Reason: v1alpha1.ReasonBlastRadius, Lasting: true, Message: fmt.Sprintf(
				"spec.action.replicaScale.by: %d: %s is a primary, and would be removed: fail over to a server with a lower ordinal first (a fault of type Failover does)", s.by, name)}
		case s.by < 0:
			return notYet("%s does not say whether it is a primary: %v", name, err)
		}
		if primary, _, other := s.primaryFor(ctx, target, now, m); other != nil || primary == address {
			return notYet("%s does not say whether it is a primary (%v), and no other server is known to be", name, err)
		}
	}
	return nil
}

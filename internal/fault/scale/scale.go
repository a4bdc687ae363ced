// Package scale is the fault ReplicaScale.
package scale

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// Kinds are the faults of the number of replicas.
var Kinds = contract.Kinds{
	v1alpha1.FaultReplicaScale: newReplicaScale,
}

// What a scaling shows beside the pods' own course.
const (
	eventReplicaAdded   = "ReplicaAdded"   // its pod was seen first
	eventReplicaSynced  = "ReplicaSynced"  // its primary holds it for online, and its pod is ready
	eventReplicaRemoved = "ReplicaRemoved" // its pod is gone, and no node of a cluster knows it
)

// defaultSyncTimeout is how long replicas may take where spec.action.replicaScale.syncTimeout says nothing.
const defaultSyncTimeout = 5 * time.Minute

// replicaScale changes the number of replicas of the StatefulSet that runs the selected server, waits until those that came are in sync, and
// reverts that. A StatefulSet adds and removes the pods with the highest ordinals: never is one removed that is a primary.
type replicaScale struct {
	contract.Deps
	mode    v1alpha1.SelectMode
	by      int32
	timeout time.Duration // for each direction
	lasts   time.Duration
	now     func() time.Time
}

func newReplicaScale(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	s := &replicaScale{Deps: deps, mode: spec.Select.Mode, lasts: contract.DurationOf(spec), now: time.Now}
	if spec.Action.ReplicaScale != nil {
		s.by, s.timeout = spec.Action.ReplicaScale.By, spec.Action.ReplicaScale.SyncTimeout.Duration
	}
	s.timeout = cmp.Or(s.timeout, defaultSyncTimeout)
	return s
}

func (s *replicaScale) Traits() contract.Traits {
	return contract.Traits{Takes: s.timeout + time.Minute, Lasts: s.lasts}
}

func (s *replicaScale) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if s.mode != "" && s.mode != v1alpha1.SelectOne {
		return problem.Invalid("spec.select.mode: %s: ReplicaScale scales the StatefulSet of one server: use One, and a fault for each StatefulSet", s.mode)
	}
	if s.by == 0 {
		return problem.Invalid("spec.action.replicaScale.by: 0 would change nothing")
	}
	now, err := s.recordSet(ctx, target)
	if err != nil {
		return err
	}
	if err := s.recordPrimary(ctx, target, now.record); err != nil {
		return err
	}
	if s.by < 0 {
		if err := s.recordGoing(ctx, now); err != nil {
			return err
		}
	}
	return contract.Save(target, *now.record)
}

func (s *replicaScale) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	now, err := s.read(ctx, target)
	if err != nil {
		return false, err
	}
	return now.gone || now.replicas == now.want, nil
}

func (s *replicaScale) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	now, err := s.read(ctx, target)
	if err != nil || now.gone {
		return contract.Progress{}, err
	}
	switch now.replicas {
	case now.want:
	case now.old:
		if begun, err := s.begin(ctx, target, now); err != nil || !begun {
			return contract.Progress{}, err
		}
	default:
		return contract.Progress{}, now.foreign()
	}
	return s.change(ctx, target, now, s.by > 0, s.beganAt(target))
}

// begin scales the StatefulSet to the fault's number of replicas, once. begun is false where the selected server does not exist any more.
func (s *replicaScale) begin(ctx context.Context, target *v1alpha1.FaultTarget, now *scaling) (begun bool, err error) {
	if target.InjectedAt != nil {
		return false, fmt.Errorf("StatefulSet %s was scaled to %d, and somebody else scaled it back to %d", now.name, now.want, now.old)
	}
	if lives, err := s.Lives(ctx, target); err != nil || !lives {
		return false, err
	}
	if s.by < 0 {
		if err := s.primaryAmong(ctx, now); err != nil {
			return false, err
		}
	}
	return true, s.scale(ctx, now, now.want)
}

func (s *replicaScale) Revert(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	if target.Revert == nil {
		return contract.Progress{}, nil // nothing was recorded, so nothing was done
	}
	now, err := s.read(ctx, target)
	if err != nil || now.gone {
		return contract.Progress{}, err
	}
	since := now.record.RevertingSince
	switch {
	case now.replicas != now.want && now.replicas != now.old:
		return contract.Progress{}, now.foreign()
	case now.replicas == now.old && since == nil && target.InjectedAt == nil:
		return contract.Progress{}, nil // never scaled
	case since == nil: // the instant, and who the added nodes are, must be stored before anything is reverted
		now.record.RevertingSince = new(s.now())
		s.recordAdded(ctx, now)
		return contract.Underway("StatefulSet %s is to have %d replicas again", now.set.Name, now.old), contract.Save(target, *now.record)
	case now.replicas == now.want:
		if progress, err := s.scaleBack(ctx, target, now, *since); err != nil || !progress.Complete() {
			return progress, err
		}
	}
	return s.change(ctx, target, now, s.by < 0, *since)
}

// scaleBack scales the StatefulSet to its old number of replicas. The node IDs of servers that this removes are recorded before.
func (s *replicaScale) scaleBack(ctx context.Context, target *v1alpha1.FaultTarget, now *scaling, since time.Time) (contract.Progress, error) {
	if s.by > 0 {
		changed := s.recordAdded(ctx, now)
		if err := contract.Save(target, *now.record); err != nil {
			return contract.Progress{}, err
		}
		if changed {
			return contract.Underway("a node of the cluster has a new ID, which was recorded"), nil
		}
		if err := s.primaryAmong(ctx, now); err != nil {
			return s.patiently(err.Error(), since)
		}
	}
	if err := s.scale(ctx, now, now.old); err != nil {
		return s.patiently(err.Error(), since)
	}
	return contract.Progress{}, nil
}

// change waits for what the StatefulSet brings or takes away, and does what Redis needs beside. What fails meanwhile is missing, too: it is tried again.
func (s *replicaScale) change(ctx context.Context, target *v1alpha1.FaultTarget, now *scaling, adding bool, since time.Time) (contract.Progress, error) {
	work := s.takeOut
	if adding {
		work = s.bringIn
	}
	missing := work(ctx, now)
	if err := contract.Save(target, *now.record); err != nil {
		return contract.Progress{}, err
	}
	return s.patiently(missing, since)
}

// patiently is the progress of what is missing, or an error once it is too late; "" = nothing is.
func (s *replicaScale) patiently(missing string, since time.Time) (contract.Progress, error) {
	switch {
	case missing == "":
		return contract.Progress{}, nil
	case s.now().Sub(since) > s.timeout:
		return contract.Progress{}, fmt.Errorf("not complete within spec.action.replicaScale.syncTimeout, %s: %s", s.timeout, missing)
	}
	return contract.Underway("%s", missing), nil
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
	for i, name := range now.changed() {
		effect, text := s.effectOn(ctx, now, name, i == 0)
		if effect != v1alpha1.EffectConfirmed {
			return effect, text
		}
		evidence = append(evidence, text)
	}
	return v1alpha1.EffectConfirmed, strings.Join(evidence, "; ")
}

// effectOn compares one pod that was added or removed with its primary's list of replicas. In a cluster only the first is compared in number, as
// each may have another primary.
func (s *replicaScale) effectOn(ctx context.Context, now *scaling, name string, first bool) (v1alpha1.Effect, string) {
	m := now.record.Members[name]
	if m.Address == "" {
		return v1alpha1.EffectNotObserved, fmt.Sprintf("StatefulSet %s has %d replicas, but pod %s does not exist yet", now.name, now.replicas, name)
	}
	primary, said, err := s.primaryFor(ctx, now, m)
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
	text := fmt.Sprintf("primary %s %s %s", primary, verb, name)
	if m.Slot == nil || first {
		text += fmt.Sprintf(" (%s instead of %d)", plural(len(said.followers), "replica"), now.record.Followers)
	}
	return v1alpha1.EffectConfirmed, text
}

// Follow implements Follower.
func (s *replicaScale) Follow(_ context.Context, target *v1alpha1.FaultTarget) []contract.Sighting {
	record, _, err := contract.Load[scaleRecord](target)
	if err != nil {
		return nil
	}
	var seen []contract.Sighting
	for _, name := range record.pods() {
		m := record.Members[name]
		for _, one := range []contract.Sighting{
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
	record, recorded, err := contract.Load[scaleRecord](target)
	if err != nil || !recorded {
		return ""
	}
	command := fmt.Sprintf("kubectl -n %s scale statefulset %s --replicas=%d", s.Namespace, record.StatefulSet, record.Replicas)
	if record.Slot == nil {
		return command
	}
	if s.by < 0 {
		return command + "; then, for a node that does not come back by itself, redis-cli CLUSTER MEET and CLUSTER REPLICATE"
	}
	for _, name := range record.pods() {
		for _, id := range record.Members[name].Nodes {
			command += "; then at every other node redis-cli CLUSTER FORGET " + id
		}
	}
	return command
}

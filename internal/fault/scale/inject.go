package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

func (s *replicaScale) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if s.mode != "" && s.mode != v1alpha1.SelectOne {
		return problem.Invalid(
			"spec.select.mode: %s: ReplicaScale scales the StatefulSet of one server: use One, and a fault for each StatefulSet",
			s.mode)
	}
	if s.by == 0 {
		return problem.Invalid("spec.action.replicaScale.by: 0 would change nothing")
	}
	now, err := s.recordSet(ctx, target)
	if err != nil {
		return err
	}
	err = s.recordPrimary(ctx, target, now.record)
	if err != nil {
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

func (s *replicaScale) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	now, err := s.read(ctx, target)
	if err != nil || now.gone {
		return contract.Progress{}, err
	}
	switch now.replicas {
	case now.want:
	case now.old:
		begun, err := s.begin(ctx, target, now)
		if err != nil || !begun {
			return contract.Progress{}, err
		}
	default:
		return contract.Progress{}, now.foreign()
	}
	return s.change(ctx, target, now, s.by > 0, s.beganAt(target))
}

// begin scales the StatefulSet to the fault's number of replicas, once. begun is false where the
// selected server does not exist any more.
func (s *replicaScale) begin(
	ctx context.Context, target *v1alpha1.FaultTarget, now *scaling,
) (begun bool, err error) {
	if target.InjectedAt != nil {
		return false, fmt.Errorf(
			"StatefulSet %s was scaled to %d, and somebody else scaled it back to %d", now.name, now.want,
			now.old)
	}
	if lives, err := s.PodExists(ctx, target); err != nil || !lives {
		return false, err
	}
	if s.by < 0 {
		if err := s.primaryAmong(ctx, now); err != nil {
			return false, err
		}
	}
	return true, s.scale(ctx, now, now.want)
}

func (s *replicaScale) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	if target.Revert == nil {
		return contract.Progress{}, nil // nothing was recorded, so nothing was done
	}
	now, err := s.read(ctx, target)
	if err != nil {
		return contract.Progress{}, err
	}
	if now.gone { // its pods may stay, or belong to another one by now
		return contract.Progress{}, s.lift(ctx, target, now.record, func(string) bool { return true })
	}
	since := now.record.RevertingSince
	switch {
	case now.replicas != now.want && now.replicas != now.old:
		return contract.Progress{}, s.leaveOthers(ctx, target, now)
	case now.replicas == now.old && since == nil && target.InjectedAt == nil:
		return contract.Progress{}, nil // never scaled
	// the instant, and the IDs of the added nodes, must be stored before anything is reverted
	case since == nil:
		now.record.RevertingSince = new(s.now())
		s.recordAdded(ctx, now)
		return contract.Underway("StatefulSet %s is to have %d replicas again", now.set.Name,
			now.old), contract.Save(target, *now.record)
	case now.replicas == now.want:
		progress, err := s.scaleBack(ctx, target, now, *since)
		if err != nil || !progress.Complete() {
			return progress, err
		}
	}
	return s.change(ctx, target, now, s.by < 0, since.Add(refusedAtMost(now.record)))
}

// leaveOthers returns why a StatefulSet that somebody else scales is not changed, and what becomes
// of the added pods that stay.
func (s *replicaScale) leaveOthers(
	ctx context.Context, target *v1alpha1.FaultTarget, now *scaling,
) error {
	stay := now.pods(0, now.replicas)
	err := s.lift(ctx, target, now.record, func(pod string) bool { return slices.Contains(stay, pod) })
	switch lifted := now.record.lifted(stay); {
	case err != nil:
		return fmt.Errorf("%w; %w", now.foreign(), err)
	case lifted != "":
		return fmt.Errorf("%w; %s", now.foreign(), lifted)
	}
	return now.foreign()
}

// scaleBack scales the StatefulSet to its old number of replicas. The node IDs of servers that this
// removes are recorded before.
func (s *replicaScale) scaleBack(
	ctx context.Context, target *v1alpha1.FaultTarget, now *scaling, since time.Time,
) (contract.Progress, error) {
	if s.by > 0 {
		changed := s.recordAdded(ctx, now)
		if err := contract.Save(target, *now.record); err != nil {
			return contract.Progress{}, err
		}
		if changed {
			return contract.Underway("a node of the cluster has a new ID, which was recorded"), nil
		}
		err := s.cleanFiles(ctx, now)
		if err == nil {
			err = s.primaryAmong(ctx, now)
		}
		if err != nil {
			return s.patiently(err.Error(), since)
		}
	}
	if err := s.scale(ctx, now, now.old); err != nil {
		return s.patiently(err.Error(), since)
	}
	return contract.Progress{}, nil
}

// change waits until the StatefulSet has added or removed its pods, and makes the changes in Redis
// that this requires. Errors count as missing: the call is repeated.
func (s *replicaScale) change(
	ctx context.Context, target *v1alpha1.FaultTarget, now *scaling, adding bool, since time.Time,
) (contract.Progress, error) {
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

// patiently is the progress while something is missing, and an error after the timeout; "" =
// nothing is missing.
func (s *replicaScale) patiently(missing string, since time.Time) (contract.Progress, error) {
	switch {
	case missing == "":
		return contract.Progress{}, nil
	case s.now().Sub(since) > s.timeout:
		return contract.Progress{}, fmt.Errorf(
			"not complete within spec.action.replicaScale.syncTimeout, %s: %s", s.timeout, missing)
	}
	return contract.Underway("%s", missing), nil
}

// beganAt is when the injection began; before that is stored, when the record was made.
func (s *replicaScale) beganAt(target *v1alpha1.FaultTarget) time.Time {
	switch {
	case target.InjectedAt != nil:
		return target.InjectedAt.Time
	case target.IntendedAt != nil:
		return target.IntendedAt.Time
	}
	return s.now()
}

func (s *replicaScale) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	record, recorded, err := contract.Load[scaleRecord](target)
	if err != nil || !recorded {
		return ""
	}
	command := fmt.Sprintf("kubectl -n %s scale statefulset %s --replicas=%d", s.Namespace,
		record.StatefulSet, record.Replicas)
	if s.by < 0 && record.Slot != nil {
		return command +
			"; then, for a node that does not come back by itself, redis-cli CLUSTER MEET and CLUSTER REPLICATE"
	}
	for _, name := range record.pods() {
		for _, id := range record.Members[name].Nodes {
			command += "; then at every other node redis-cli CLUSTER FORGET " + id
		}
	}
	for _, name := range record.pods() {
		if m := record.Members[name]; m.barred() {
			command += fmt.Sprintf("; if %s is to stay instead, %s", name,
				s.cli(target, name, m, "CONFIG", "SET", m.bar().setting, m.Former))
		}
	}
	return command
}

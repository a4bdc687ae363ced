package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
)

func (t ioThreads) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if t.count < 1 {
		return problem.Invalid("spec.action.ioThreads.count: must be at least 1 (the main thread)")
	}
	now, err := t.ask(ctx, target.Address)
	if err != nil {
		return t.Refusal(err, target.Address, "CONFIG", "GET")
	}
	if now.count == "" {
		return problem.Unsupported("the server at %s has no setting io-threads", target.Address)
	}
	if err := t.roomForThreads(ctx, target); err != nil {
		return err
	}
	how, err := t.way(ctx, target, now)
	if err != nil {
		return err
	}
	record := threadsRecord{Way: how, Count: now.count}
	switch how {
	case byLive:
		live, err := t.live(now.reads != "").record(ctx, target)
		if err != nil {
			return err
		}
		record.Live = &live
	case byRoll:
		if record.Template, err = t.recordRoll(ctx, target, now.reads != ""); err != nil {
			return err
		}
	}
	return contract.Save(target, record)
}

// way determines how the target can be changed. Versions do not show which servers accept
// io-threads while they run. Setting the present value shows it and changes nothing.
func (t ioThreads) way(
	ctx context.Context, target *v1alpha1.FaultTarget, now threads,
) (string, error) {
	if t.satisfied(now) {
		return byNothing, nil
	}
	if t.method == v1alpha1.ApplyRoll {
		return byRoll, nil
	}
	_, err := t.Servers.Do(ctx, target.Address, t.Login, "CONFIG", "SET", "io-threads", now.count)
	switch {
	case err == nil:
		return byLive, nil
	case !redis.IsReply(err):
		return "", err
	// the latter before Redis 7
	case !strings.Contains(err.Error(), "immutable") &&
		!strings.Contains(err.Error(), "Unsupported CONFIG parameter"):
		return "", problem.Unsupported("spec.action.ioThreads.method: %v",
			t.Refusal(err, target.Address, "CONFIG", "SET"))
	case t.method == v1alpha1.ApplyLive:
		return "", problem.Unsupported("spec.action.ioThreads.method: Live is not possible: %v. Use Roll",
			err)
	}
	return byRoll, nil
}

func (t ioThreads) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, _, err := contract.Load[threadsRecord](target)
	switch {
	case err != nil:
		return false, err
	case record.Live != nil:
		return t.recordedLive(*record.Live).begun(ctx, target, *record.Live)
	case record.Template != nil:
		return t.rollBegun(ctx, *record.Template)
	}
	return false, nil
}

func (t ioThreads) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[threadsRecord](target)
	switch {
	case err != nil:
		return contract.Progress{}, err
	case !recorded:
		return contract.Progress{}, fmt.Errorf("pod %s has no record of its threads", target.Pod)
	case record.Template != nil:
		return t.rollOut(ctx, *record.Template)
	case record.Live != nil:
		err := t.recordedLive(*record.Live).change(ctx, target, record.Live)
		if err != nil {
			return contract.Progress{}, err
		}
	}
	err = t.recordCounters(ctx, target, &record)
	if err != nil {
		return contract.Progress{}, err
	}
	return contract.Progress{}, contract.Save(target, record)
}

func (t ioThreads) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, _, err := contract.Load[threadsRecord](target)
	switch {
	case err != nil:
		return contract.Progress{}, err
	case record.Live != nil:
		progress, err := t.recordedLive(*record.Live).revert(ctx, target, record.Live)
		if err != nil {
			return progress, err
		}
		return progress, contract.Save(target, record)
	case record.Template != nil:
		return t.rollBack(ctx, target, record)
	}
	return contract.Progress{}, nil
}

// Leave implements contract.Leaver.
func (t ioThreads) Leave(ctx context.Context, target *v1alpha1.FaultTarget) error {
	record, _, err := contract.Load[threadsRecord](target)
	if err != nil || record.Template == nil {
		return err
	}
	return t.leave(ctx, *record.Template)
}

// Warnings implements contract.Warner.
func (t ioThreads) Warnings(target *v1alpha1.FaultTarget) []string {
	record, _, err := contract.Load[threadsRecord](target)
	switch {
	case err != nil:
		return nil
	case record.Live != nil:
		return t.recordedLive(*record.Live).warnings(target, *record.Live)
	case record.Released:
		return []string{
			fmt.Sprintf(
				"somebody else changed the %s in StatefulSet %s while the fault acted: the revert leaves "+
					"that as it is, without the fault's options", record.Template.optionSource,
				record.Template.StatefulSet),
		}
	}
	return nil
}

func (t ioThreads) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	record, _, err := contract.Load[threadsRecord](target)
	switch {
	case err != nil:
		return ""
	case record.Live != nil:
		return t.recordedLive(*record.Live).manualRevertCommand(target, *record.Live)
	case record.Template != nil:
		return record.Template.manualRevertCommand(t.Namespace)
	}
	return ""
}

package config

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// ioThreads changes the number of I/O threads: by CONFIG SET where the server takes it, else by the pod template of the StatefulSet.
type ioThreads struct {
	contract.Deps
	count  int32
	reads  bool
	method v1alpha1.ApplyMethod
	allow  []v1alpha1.Allowance
	lasts  time.Duration
}

// threadsRecord is the record of a target whose threads change: how, and what that needs.
type threadsRecord struct {
	Way      string          `json:"way"`
	Count    string          `json:"count"`              // the number of threads before
	Live     *settingsRecord `json:"live,omitempty"`     // of way Live
	Template *templateEdit   `json:"template,omitempty"` // of way Roll
	Counters *counters       `json:"counters,omitempty"` // just after the change; nil until then, and of a process that began with the new number
}

// The ways in which a target is changed.
const (
	byNothing = "None" // it has as many threads as are wanted
	byLive    = "Live"
	byRoll    = "Roll"
)

func newIOThreads(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	t := ioThreads{Deps: deps, method: v1alpha1.ApplyAuto, allow: spec.Allow, lasts: contract.DurationOf(spec)}
	if s := spec.Action.IOThreads; s != nil {
		t.count, t.reads = s.Count, s.Reads
		if s.Method != "" {
			t.method = s.Method
		}
	}
	return t
}

// Traits are asked for before a server is: a fault that may come to roll rolls.
func (t ioThreads) Traits() contract.Traits {
	return contract.Traits{Lasts: t.lasts, RollsPods: t.method != v1alpha1.ApplyLive}
}

func (t ioThreads) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if t.count < 1 {
		return problem.Invalid("spec.action.ioThreads.count: there is at least the main thread")
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

// way finds how the target can be changed. Which servers take io-threads while they run is not told by their versions: setting the value that it
// has changes nothing, and is answered as setting another would be.
func (t ioThreads) way(ctx context.Context, target *v1alpha1.FaultTarget, now threads) (string, error) {
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
	case !strings.Contains(err.Error(), "immutable") && !strings.Contains(err.Error(), "Unsupported CONFIG parameter"): // the latter before Redis 7
		return "", problem.Unsupported("spec.action.ioThreads.method: %v", t.Refusal(err, target.Address, "CONFIG", "SET"))
	case t.method == v1alpha1.ApplyLive:
		return "", problem.Unsupported("spec.action.ioThreads.method: Live is not possible: %v. Use Roll", err)
	}
	return byRoll, nil
}

// threads are a server's settings; "" = it has none of the name.
type threads struct{ count, reads string }

func (t ioThreads) ask(ctx context.Context, address string) (threads, error) {
	var found [2]string
	for i, name := range []string{"io-threads", "io-threads-do-reads"} { // one by one: a server before Redis 7 takes no more
		value, err := t.Settings(ctx, address, name)
		if err != nil {
			return threads{}, err
		}
		found[i] = value[name]
	}
	return threads{count: found[0], reads: found[1]}, nil
}

// satisfied says whether a server is as the spec wants it. reads that are not asked for are left as they are.
func (t ioThreads) satisfied(now threads) bool {
	return now.count == strconv.Itoa(int(t.count)) && (!t.reads || now.reads != "no")
}

// live are the settings that CONFIG SET changes.
func (t ioThreads) live(knowsReads bool) settings {
	values := map[string]string{"io-threads": strconv.Itoa(int(t.count))}
	if t.reads && knowsReads {
		values["io-threads-do-reads"] = "yes"
	}
	return settings{Deps: t.Deps, values: values, field: func(name string) string {
		if name == "io-threads" {
			return "spec.action.ioThreads.count"
		}
		return "spec.action.ioThreads.reads"
	}}
}

// recordedLive are the settings of a target that was recorded.
func (t ioThreads) recordedLive(record settingsRecord) settings {
	_, knowsReads := record.Old["io-threads-do-reads"]
	return t.live(knowsReads)
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

func (t ioThreads) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	record, recorded, err := contract.Load[threadsRecord](target)
	switch {
	case err != nil:
		return contract.Progress{}, err
	case !recorded:
		return contract.Progress{}, fmt.Errorf("pod %s has no record of its threads", target.Pod)
	case record.Template != nil:
		return t.rollOut(ctx, *record.Template)
	case record.Live != nil:
		if err := t.recordedLive(*record.Live).change(ctx, target, record.Live); err != nil {
			return contract.Progress{}, err
		}
	}
	if err := t.recordCounters(ctx, target, &record); err != nil {
		return contract.Progress{}, err
	}
	return contract.Progress{}, contract.Save(target, record)
}

func (t ioThreads) Revert(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
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

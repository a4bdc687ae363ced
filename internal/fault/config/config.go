// Package config is the faults that change a server's settings: Config, live, and IOThreads, live
// or by the pods' template.
package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/owner"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// Kinds are the faults of servers' settings.
var Kinds = contract.Kinds{
	v1alpha1.FaultConfig:    newConfig,
	v1alpha1.FaultIOThreads: newIOThreads,
}

// config changes settings of the server by CONFIG SET for as long as the fault lasts.
type config struct {
	settings
	allow []v1alpha1.Allowance
	lasts time.Duration
}

func newConfig(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	c := config{allow: spec.Allow, lasts: spec.Stays()}
	c.settings = settings{
		Deps:    deps,
		setting: spec.Setting,
		values:  map[string]string{},
		field:   parameterField,
	}
	if spec.Action.Config != nil {
		for name, value := range spec.Action.Config.Parameters {
			c.values[name] = string(value)
		}
	}
	return c
}

func parameterField(name string) string {
	return "spec.action.config.parameters." + name
}

func (c config) Traits() contract.Traits {
	return contract.Traits{
		Lasts:    c.lasts,
		Separate: true,
		Together: true,
		Exact:    true,
	}
}

func (c config) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if len(c.values) == 0 {
		return problem.Invalid("spec.action.config.parameters: nothing would be changed")
	}
	for _, name := range c.names() {
		if why := denied(name); why != "" {
			return problem.Invalid("%s: Redquake does not change this setting: %s", c.field(name), why)
		}
	}
	if err := c.restoredByOthers(ctx, target); err != nil {
		return err
	}
	record, err := c.record(ctx, target)
	if err != nil {
		return err
	}
	if err := c.mayEvict(ctx, target); err != nil {
		return err
	}
	if err := c.hasLog(ctx, target); err != nil {
		return err
	}
	return contract.Save(target, record)
}

// restoredByOthers refuses a setting that the operator of the workload applies again and again.
func (c config) restoredByOthers(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := c.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	above, err := owner.Of(ctx, c.Live, pod)
	if err != nil || above == nil || above.Paused() != "" {
		return err
	}
	for _, name := range c.names() {
		if field := above.Sets(name); field != "" {
			return problem.Unsupported(
				"%s: %s has it in %s, and its operator would restore that: change it there%s", c.field(name),
				above, field, above.PauseAdvice())
		}
	}
	return nil
}

// mayEvict refuses settings at which the server would evict data, unless that is allowed: a revert
// could not restore it.
func (c config) mayEvict(ctx context.Context, target *v1alpha1.FaultTarget) error {
	i := slices.IndexFunc(evicting, func(name string) bool { return c.values[name] != "" })
	if i < 0 || slices.Contains(c.allow, v1alpha1.AllowEviction) {
		return nil
	}
	before := map[string]string{}
	// one by one: a server before Redis 7 takes no more
	for _, name := range []string{"maxmemory", "maxmemory-policy"} {
		found, err := c.Settings(ctx, target.Address, name)
		if err != nil {
			return err
		}
		before[name] = found[name]
	}
	why := evicts(before, c.values)
	if why == "" {
		return nil
	}
	return problem.TooWide(
		"%s: %s: evicted data cannot be restored; spec.allow: [%s] lifts this guard",
		c.field(evicting[i]), why, v1alpha1.AllowEviction)
}

// hasLog refuses appendfsync where there is no append-only file: it would have no effect.
func (c config) hasLog(ctx context.Context, target *v1alpha1.FaultTarget) error {
	_, asked := c.values["appendfsync"]
	if !asked || strings.EqualFold(c.values["appendonly"], "yes") {
		return nil
	}
	info, err := c.Info(ctx, target.Address, "everything")
	if err != nil {
		return err
	}
	if c.values["appendonly"] == "" && info.On("aof_enabled") {
		return nil
	}
	return problem.Invalid(
		`%s: it has no effect without an append-only file: set appendonly: "yes" beside it`,
		c.field("appendfsync"))
}

func (c config) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	record, recorded, err := contract.Load[settingsRecord](target)
	if err != nil || !recorded {
		return false, err
	}
	return c.begun(ctx, target, record)
}

func (c config) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[settingsRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	if !recorded {
		return contract.Progress{}, fmt.Errorf("pod %s has no record of its settings", target.Pod)
	}
	if err := c.change(ctx, target, &record); err != nil {
		return contract.Progress{}, err
	}
	return contract.Progress{}, contract.Save(target, record)
}

func (c config) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	record, _, err := contract.Load[settingsRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	effect, evidence := c.effect(ctx, target, record)
	_, asked := c.values["appendonly"]
	if !asked || effect != v1alpha1.EffectConfirmed {
		return effect, evidence
	}
	info, err := c.Info(ctx, target.Address, "everything")
	if err != nil {
		return contract.Unseen(err)
	}
	return effect, fmt.Sprintf("%s; aof_enabled:%s, aof_rewrite_in_progress:%s", evidence,
		info["aof_enabled"], info["aof_rewrite_in_progress"])
}

// Revert sets the old values. An append-only file that is switched on again is complete, and data
// durable, only when it has been written anew.
func (c config) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, recorded, err := contract.Load[settingsRecord](target)
	if err != nil || !recorded { // nothing was recorded, so nothing was changed
		return contract.Progress{}, err
	}
	progress, err := c.revert(ctx, target, &record)
	if err == nil {
		err = contract.Save(target, record)
	}
	enabledAgain := strings.EqualFold(c.values["appendonly"], "no") &&
		record.Old["appendonly"] == "yes"
	if err != nil || !progress.Complete() || !enabledAgain {
		return progress, err
	}
	return c.awaitRewrite(ctx, target)
}

// awaitRewrite is complete once the server has written its append-only file anew.
func (c config) awaitRewrite(
	ctx context.Context, t *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	at, err := c.Locate(ctx, t)
	if err != nil || at.Identity != target.Original {
		return contract.Progress{}, err
	}
	info, err := c.Info(ctx, at.Address, "everything")
	if err != nil {
		return contract.Progress{}, err
	}
	if info.On("aof_rewrite_in_progress") || info.On("aof_rewrite_scheduled") {
		return contract.Underway("appendonly is yes again; the file is being written anew"), nil
	}
	return contract.Progress{}, nil
}

func (c config) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	record, _, err := contract.Load[settingsRecord](target)
	if err != nil {
		return ""
	}
	return c.manualRevertCommand(target, record)
}

// Warnings implements contract.Warner.
func (c config) Warnings(target *v1alpha1.FaultTarget) []string {
	record, recorded, err := contract.Load[settingsRecord](target)
	if err != nil || !recorded {
		return nil
	}
	return c.warnings(target, record)
}

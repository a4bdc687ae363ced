package pod

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// keptDown is a pod kill that also deletes the replacements until its time is over. It ends with
// the operator process: there is nothing to revert.
type keptDown struct {
	Kill
	lasts time.Duration
}

var _ contract.Keeper = keptDown{}

func (k keptDown) Traits() contract.Traits {
	traits := k.Kill.Traits()
	traits.Lasts = k.lasts
	return traits
}

// keptRecord is the record of a pod that is kept down.
type keptRecord struct {
	ReplacedRecord
	Pods int32 `json:"pods"` // how many its controller had
}

// Preflight also records the controller whose pods are replacements.
func (k keptDown) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if err := k.Kill.Preflight(ctx, target); err != nil {
		return err
	}
	pod, err := k.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	record := keptRecord{ReplacedRecord: ReplacedRecord{Controller: ControllerOf(pod)}}
	if !record.Controller.keepsNames() {
		running, err := k.running(ctx, record.Controller)
		if err != nil {
			return err
		}
		record.Pods = int32(min(len(running), math.MaxInt32))
	}
	return contract.Save(target, record)
}

// Inject kills the pod, unless its replacements could not be found.
func (k keptDown) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[keptRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	return k.Kill.Inject(ctx, target)
}

// Due returns the replacements. Where the controller gives each pod a new name, any new pod may be
// one, also the one for a pod that was drained, or of a larger size: of them only so many are due
// that as many pods as were hit are missing.
func (k keptDown) Due(ctx context.Context, targets []v1alpha1.FaultTarget) ([]corev1.Pod, error) {
	var due []corev1.Pod
	var failed error
	groups := map[types.UID]*group{}
	for i := range targets {
		t := &targets[i]
		record, known, err := contract.Load[keptRecord](t)
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
		case !known || t.InjectedAt == nil:
		case record.Controller.keepsNames():
			found, err := Replacements(ctx, k.Deps, t, record.Controller)
			due, failed = append(due, found...), errors.Join(failed, err)
		default:
			join(groups, record, t)
		}
	}
	for _, g := range groups {
		found, err := k.surplus(ctx, g)
		due, failed = append(due, found...), errors.Join(failed, err)
	}
	return due, failed
}

// Keep deletes a replacement.
func (k keptDown) Keep(ctx context.Context, replacement *corev1.Pod) error {
	return Remove(ctx, k.Deps, replacement)
}

// Effect is not observed where a replacement serves.
func (k keptDown) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	found, err := k.Due(ctx, []v1alpha1.FaultTarget{*target})
	if err != nil {
		return contract.Unseen(err)
	}
	for i := range found {
		if found[i].Status.PodIP == "" {
			continue
		}
		_, err := k.Servers.Ask(ctx, k.Address(&found[i]), k.Login)
		if err == nil {
			return contract.NotObserved("the replacement %s (%s) serves", found[i].Name,
				found[i].UID)
		}
	}
	return k.Kill.Effect(ctx, target)
}

// Replaced says what ends a pod's absence.
const Replaced = "the pod's controller replaces it"

// Describe implements contract.Injector.
func (k Kill) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.Description{
		Action:     "delete pod " + target.Pod + " " + GraceInWords(k.grace),
		SelfEnding: Replaced,
	}
}

// GraceInWords says with which grace period a pod is deleted; nil = its own.
func GraceInWords(seconds *int64) string {
	switch {
	case seconds == nil:
		return "with its own grace period"
	case *seconds == 0:
		return "without grace period"
	}
	return fmt.Sprintf("with a grace period of %ds", *seconds)
}

func (k keptDown) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.Description{
		Action: fmt.Sprintf("%s, and every replacement at once for %s",
			k.Kill.Describe(target).Action, k.lasts),
		Revert:     "leave the next replacement alone",
		SelfEnding: "without an operator nothing deletes the replacement",
	}
}

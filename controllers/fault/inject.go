package fault

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/target"
)

// inject breaks every target that is not broken yet. The instant just before the call is t0 of its target; the first is the fault's.
func (r *Reconciler) inject(ctx context.Context, s *scope) outcome {
	status := &s.fault.Status
	if old, err := state.IsStale(ctx, r.APIReader, "RedisFault", s.before); old || err != nil {
		return outcome{again: true, err: client.IgnoreNotFound(err)}
	}
	all := true
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.ActiveAt != nil {
			continue
		}
		call := r.injectOne(ctx, s, t)
		if call.progress.Stage == contract.StagePreparing { // what was prepared may serve the other targets, too: it must be in effect before the first is broken
			all = false
			break
		}
		if call.err != nil {
			all = false
			continue
		}
		s.markInjected(ctx, t, call)
		if !call.progress.Complete() {
			all = false
			continue
		}
		now := metav1.NewMicroTime(r.Clock.Now())
		t.ActiveAt = &now
		if now.Sub(t.InjectedAt.Time) > target.AskTimeout {
			appendEvent(status, now.Time, eventActive, t.Pod, "")
		}
	}
	return outcome{again: all}
}

// injection is one call of Inject.
type injection struct {
	at       metav1.MicroTime // when it broke the target, if it did
	took     time.Duration
	progress contract.Progress
	err      error
}

func (r *Reconciler) injectOne(ctx context.Context, s *scope, t *v1alpha1.FaultTarget) injection {
	// If it is broken already, an operator process that died before it could say so did it, just after it had stored the intent.
	begun, err := s.injector.Begun(ctx, t)
	before := metav1.NewMicroTime(r.Clock.Now())
	call := injection{at: before, err: err}
	if begun && t.IntendedAt != nil {
		call.at = *t.IntendedAt
	}
	if err == nil {
		call.progress, call.err = s.injector.Inject(ctx, t)
		call.took = r.Clock.Now().Sub(before.Time)
		t.InjectionTook = new(v1alpha1.MicrosecondsOf(call.took))
	}
	if t.Progress == "" { // a step of an injection that is under way is no further attempt
		t.Attempts++
	}
	t.LastError, t.Progress = "", ""
	logger := s.logOf(ctx, t)
	switch {
	case call.err != nil:
		// This attempt may have broken it all the same: then it is the one that counts.
		t.IntendedAt, t.LastError = &before, state.Truncate(call.err.Error(), 1024)
		logger.V(1).Info("Retrying to inject", "attempts", t.Attempts, "cause", call.err.Error())
	case call.progress.Stage == contract.StagePreparing: // the breaking call is still to come
		t.IntendedAt, t.Progress = &before, state.Truncate(call.progress.Message, 512)
		logger.V(1).Info("Preparing the injection", "progress", t.Progress)
	case !call.progress.Complete():
		t.Progress = state.Truncate(call.progress.Message, 512)
		logger.V(1).Info("Injection is under way", "progress", t.Progress)
	}
	return call
}

// markInjected keeps the instant at which a target was first broken; the first of them all is t0.
func (s *scope) markInjected(ctx context.Context, t *v1alpha1.FaultTarget, call injection) {
	if t.InjectedAt != nil {
		return
	}
	status, at := &s.fault.Status, call.at
	t.InjectedAt = &at
	if status.InjectedAt == nil || at.Before(status.InjectedAt) {
		status.InjectedAt = &at
		if status.LoadStartTime != nil {
			status.InjectedOffset = new(v1alpha1.MicrosecondsOf(at.Sub(status.LoadStartTime.Time)))
		}
	}
	s.logOf(ctx, t).Info("Injected", "role", t.Role, "at", at.Time, "took", call.took)
	appendEvent(status, at.Time, eventInjected, t.Pod, fmt.Sprintf("%s; the call took %s", s.fault.Spec.Action.Type, format.Duration(call.took)))
}

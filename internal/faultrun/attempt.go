package faultrun

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// revertOnce calls Revert on every target that is due. progressed is false if all calls failed.
func (v *Reverter) revertOnce() (complete, progressed bool) {
	v.acting <- struct{}{}
	defer func() { <-v.acting }()
	injector := v.injectorNow()
	p, _ := v.Progress()
	var reverting errgroup.Group
	reverting.SetLimit(1)
	// a deleted fault must be removed in time even if many servers do not answer
	if injector.Traits().Separate {
		reverting.SetLimit(revertsAtOnce)
	}
	var mu sync.Mutex
	for i := range p.targets {
		// without an object nothing can be stored
		t := &p.targets[i]
		if IsOpen(t) && (v.orphaned.Load() || v.isStored(t.Pod)) {
			reverting.Go(func() error {
				did := v.revertOne(injector, t, len(p.targets))
				mu.Lock()
				defer mu.Unlock()
				progressed = progressed || did
				return nil
			})
		}
	}
	_ = reverting.Wait() // no revert returns an error
	v.mu.Lock()
	defer v.mu.Unlock()
	v.work.tried = true
	v.work.known.conclude(v.now())
	return v.work.known.revertedAt != nil, progressed
}

// revertOne calls Revert for one of several targets and takes over the result. It returns whether
// that did not fail.
func (v *Reverter) revertOne(
	injector contract.Injector, t *v1alpha1.FaultTarget, targets int,
) bool {
	logger := v.log.WithValues("target", t.Pod)
	before, step := t.Revert.DeepCopy(), t.Progress
	ctx, cancel := context.WithTimeout(v.over, CallTimeout)
	defer cancel()
	progress, err := injector.Revert(ctx, t)
	t.Progress = ""
	switch {
	case err != nil:
		t.RevertAttempts++
		t.RevertError = Shorten(err.Error(), MaxError, targets)
		logger.V(1).Info("Retrying to revert", "attempts", t.RevertAttempts, "cause", err.Error())
	case !progress.Complete():
		t.Progress = Shorten(progress.Message, MaxProgress, targets)
		t.RevertAttempts = 0
		t.RevertError = Shorten(progress.Message, MaxError, targets)
		logger.V(1).Info("Revert is under way", "progress", t.Progress)
	default:
		t.RevertError = ""
		t.RevertedAt = new(metav1.NewMicroTime(v.now()))
		logger.Info("Reverted")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.work.reverted(t, before, step, err, v.now())
	if err != nil && isRefusedLogin(err) {
		v.refused = !v.refused
	}
	return err == nil
}

// isRefusedLogin reports whether a server refused the login.
func isRefusedLogin(err error) bool {
	return slices.ContainsFunc([]string{
		"WRONGPASS", "NOAUTH", "invalid password",
		"invalid username-password",
	}, func(text string) bool {
		return strings.Contains(err.Error(),
			text)
	})
}

// injectorNow is the injector for the next attempt.
func (v *Reverter) injectorNow() contract.Injector {
	v.mu.Lock()
	own, refused := v.injector, v.refused
	v.mu.Unlock()
	if own != nil && !refused {
		return own
	}
	ctx, cancel := context.WithTimeout(v.over, CallTimeout)
	defer cancel()
	made, err := v.by.Load().Build(ctx)
	if err != nil {
		v.log.V(1).Info("Reverting without a login", "cause", err.Error())
	} else if own == nil {
		v.mu.Lock()
		v.injector = made
		v.mu.Unlock()
	}
	return made
}

// isStored reports whether the API server has the target's record.
func (v *Reverter) isStored(pod string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.work.isStored(pod)
}

// storeRecords stores what the next attempt must not begin without, if no reconcile does: this
// process does not lead, and whoever does stores its own work only.
func (v *Reverter) storeRecords() {
	p, _ := v.Progress()
	if v.session.registry.leads() ||
		!slices.ContainsFunc(p.targets, func(t v1alpha1.FaultTarget) bool {
			return IsOpen(&t) &&
				!v.isStored(t.Pod)
		}) {
		return
	}
	ctx, cancel := context.WithTimeout(v.over, CallTimeout)
	defer cancel()
	by, f := v.by.Load(), &v1alpha1.RedisFault{}
	err := by.Live.Get(ctx, v.session.key, f)
	if apierrors.IsNotFound(err) || err == nil && f.UID != v.session.id {
		v.orphaned.Store(true)
		v.poke()
		return
	}
	if err != nil || !v.isOf(&f.Status) {
		return
	}
	before := f.DeepCopy()
	v.CatchUp(&f.Status)
	p, _ = v.Progress()
	p.Into(&f.Status)
	// The lock: who leads may have written since.
	stored := f.DeepCopy() // the answer is decoded into it
	err = by.Statuses.Patch(ctx, stored,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		v.log.V(1).Info("Retrying to store what the revert relies on", "cause", err.Error())
		return
	}
	v.CatchUp(&stored.Status)
}

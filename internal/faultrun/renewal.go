package faultrun

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redquake/redquake/internal/fault/contract"
)

// renewedAtOnce is how many targets are renewed at a time.
const renewedAtOnce = 64

// watchRenewals renews a fault that would end by itself, from its injection until the revert begins.
// It does so beside the reconciles, and beside calls that take long: what is renewed too late has
// ended. It may be called again.
func (v *Reverter) watchRenewals() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.work.traits.Renews == 0 || v.renewing != nil || v.work.known.injectedAt == nil ||
		v.work.known.revertingSince != nil || v.over.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(v.over)
	context.AfterFunc(v.begun, cancel)
	ended, every := make(chan struct{}), v.work.traits.Renews
	if v.session.registry.start(func() {
		defer close(ended)
		for again := true; again; again = pauseFor(ctx, every) {
			v.renew(ctx)
		}
	}) {
		v.renewing = ended
	}
}

// renew renews every target once. A process that does not lead leaves that to the one that does.
func (v *Reverter) renew(ctx context.Context) {
	if !v.session.registry.leads() {
		return
	}
	renewer, ok := v.injectorNow().(contract.Renewer) //nolint:contextcheck // it is kept for the revert, too
	if !ok {
		return
	}
	p, every := v.renewals()
	ctx, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(renewedAtOnce)
	for i := range p.targets {
		t := &p.targets[i]
		if t.InjectedAt == nil || !IsOpen(t) {
			continue
		}
		all.Go(func() error {
			if err := renewer.Renew(ctx, t); err != nil && ctx.Err() == nil {
				v.log.V(1).Info("Retrying to renew", "target", t.Pod, "cause", err.Error())
			}
			return nil
		})
	}
	_ = all.Wait() // no call returns an error
}

// renewals are what is to be renewed, and how often.
func (v *Reverter) renewals() (p Progress, every time.Duration) {
	p, _ = v.Progress()
	v.mu.Lock()
	defer v.mu.Unlock()
	return p, v.work.traits.Renews
}

// awaitRenewals waits until no renewal is under way: one that came after the revert could undo it.
func (v *Reverter) awaitRenewals() {
	v.mu.Lock()
	renewing := v.renewing
	v.mu.Unlock()
	if renewing != nil {
		<-renewing
	}
}

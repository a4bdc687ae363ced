package agent

import (
	"context"
	"errors"
)

// errCleaningUp is why a pod cannot be released yet.
const errCleaningUp = errConflict("the keys of the load are being removed")

// cleanUp begins to remove the keys of the load, and tells when that is over. A failure does not
// affect the figures of the load: it is logged. ctx is that of what it begins.
func (p *process) cleanUp(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.cfg.Runner.(cleaner)
	switch {
	case !ok || !p.cfg.Plan.Workload.Keyspace.Cleanup:
		return nil
	case !p.state.Ended():
		return errConflict("the load has not ended: the state is " + string(p.state))
	case p.cleaned == nil:
		p.cleaned = make(chan struct{})
		go p.removeKeys(ctx, c, p.cleaned)
	}
	select {
	case <-p.cleaned:
		return nil
	default:
		return errCleaningUp
	}
}

// removeKeys ends with the release of the pod.
func (p *process) removeKeys(ctx context.Context, c cleaner, done chan<- struct{}) {
	defer close(done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.released:
			cancel()
		case <-ctx.Done():
		}
	}()
	removed, err := c.CleanUp(ctx, func(string) {})
	switch {
	case errors.Is(err, context.Canceled):
		p.cfg.Logger.Error("the pod was released before all keys of the load were removed", "removed",
			removed)
	case err != nil:
		p.cfg.Logger.Error("the keys of the load could not be removed", "removed", removed, "error",
			err.Error())
	default:
		p.cfg.Logger.Info("the keys of the load were removed", "removed", removed)
	}
}

package sim

import (
	"context"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Place is a namespace with its stand-ins.
type Place struct {
	T         testing.TB
	Client    client.WithWatch
	Namespace string
}

// StandIn replaces a part of the cluster: it calls step whenever an object of these kinds changes, on poke, and
// periodically, until the test ends or stop is called. It ignores NotFound and Conflict errors, and refusals by the API
// server unless they last for three seconds.
func (p *Place) StandIn(
	what string, every time.Duration, poke <-chan struct{}, step func(context.Context) error, kinds ...client.ObjectList,
) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	var ended sync.WaitGroup
	for _, kind := range kinds {
		ended.Go(func() {
			Watch(ctx, p.Client, p.Namespace, kind, func() { wake(changed) }, func(client.Object) { wake(changed) })
		})
	}
	ended.Go(func() {
		well := time.Now()
		for ctx.Err() == nil {
			err := step(ctx)
			switch {
			case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), meta.IsNoMatchError(err):
				well = time.Now()
			case ctx.Err() == nil && time.Since(well) > 3*time.Second:
				p.T.Errorf("%s: %v", what, err)
				well = time.Now()
			}
			again := time.NewTimer(every)
			select {
			case <-ctx.Done():
			case <-changed:
			case <-poke:
			case <-again.C:
			}
			again.Stop()
		}
	})
	stop = func() {
		cancel()
		ended.Wait()
	}
	p.T.Cleanup(stop)
	return stop
}

// Watch calls seen with every object of a kind that changes or is deleted, until ctx ends. A watch that ends is
// restarted. It calls began whenever one begins: what changed before is not seen.
func Watch(
	ctx context.Context, c client.WithWatch, namespace string, kind client.ObjectList, began func(),
	seen func(client.Object),
) {
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, kind, client.InNamespace(namespace))
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		began()
		follow(ctx, w.ResultChan(), seen)
		w.Stop()
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

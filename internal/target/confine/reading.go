package confine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// How lists of the API server are read.
const (
	listTimeout = 30 * time.Second // limits a list, however many pages it has
	// the next list begins at the earliest after this many times what the last one took,
	listShare = 4
	listRest  = 10 * time.Second // or after this time
)

// reading is what the latest complete list of the API server shows. One list at a time is under
// way, for all who ask: it goes on when one of them cannot wait for it.
type reading[T any] struct {
	list func(context.Context) (T, error)
	rest time.Duration // no list begins earlier after another one

	under singleflight.Group
	mu    sync.Mutex
	value T         // of the latest complete list; zero before
	due   time.Time // when the next list may begin
	err   error     // why the latest list is not complete
}

// latest lists unless it has just done so. With an error, the value is that of an earlier list.
func (r *reading[T]) latest(ctx context.Context) (T, error) {
	if value, err, due := r.known(); !due {
		return value, err
	}
	detached := context.WithoutCancel(ctx)
	done := r.under.DoChan("", func() (any, error) {
		r.renew(detached)
		return nil, nil
	})
	select {
	case <-done:
		value, err, _ := r.known()
		return value, err
	case <-ctx.Done():
		value, _, _ := r.known()
		return value, fmt.Errorf("in time: %w", context.Cause(ctx))
	}
}

// known is the result of the latest list, and whether the next one may begin.
func (r *reading[T]) known() (value T, err error, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, r.err, !time.Now().Before(r.due)
}

func (r *reading[T]) renew(ctx context.Context) {
	if _, _, due := r.known(); !due { // another list ended meanwhile
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	began := time.Now()
	value, err := r.list(ctx)
	if ctx.Err() != nil {
		err = fmt.Errorf("in time: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err = err; err == nil {
		r.value = value
	}
	r.due = time.Now().Add(max(r.rest, min(listShare*time.Since(began), listRest)))
}

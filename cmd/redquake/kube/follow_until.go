package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ErrDeleted is the error of FollowUntil for an object that was deleted meanwhile.
var ErrDeleted = errors.New("was deleted meanwhile")

// FollowUntil follows objects of a kind until check is done with each of them, or has an error. An
// object that is deleted meanwhile is ErrDeleted. namespace "" is all, name "" is all of the kind.
func (c *Client) FollowUntil(
	ctx context.Context, kind Kind, namespace, name string, of []types.UID,
	check func(*Object) (done bool, err error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan Change)
	err := c.Follow(ctx, kind.GVR(), namespace, name, changes)
	if err != nil {
		return err
	}
	waiting, seen := map[types.UID]bool{}, map[types.UID]bool{}
	for _, uid := range of {
		waiting[uid] = true
	}
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case change := <-changes:
			if change.Lasting {
				return change.Trouble
			}
			if change.Listed && slices.ContainsFunc(of, func(uid types.UID) bool { return !seen[uid] }) {
				return fmt.Errorf("an object of kind %s %w", kind.Name, ErrDeleted)
			}
			if change.Object == nil || !waiting[change.Object.GetUID()] {
				continue
			}
			seen[change.Object.GetUID()] = true
			if change.Deleted {
				return fmt.Errorf("%s %s %w", kind.Name, change.Object.GetName(), ErrDeleted)
			}
			o, err := ObjectOf(change.Object)
			if err != nil {
				return err
			}
			done, err := check(o)
			if err != nil {
				return err
			}
			if done {
				delete(waiting, o.Meta().UID)
			}
		}
	}
	return nil
}

// UIDs are those of objects, in their order.
func UIDs(all []*Object) (ids []types.UID) {
	for _, o := range all {
		ids = append(ids, o.Meta().UID)
	}
	return ids
}

// line is the connection to the API server, as its requests find it. An informer keeps it to itself
// when no connection can be made.
type line struct {
	mu        sync.Mutex
	down      bool
	observers map[*func(error)]bool
}

// observe calls f with the error of each request that gets no answer, and with nil when one has got
// an answer again. stop ends that.
func (l *line) observe(f func(error)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.observers[&f] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.observers, &f)
	}
}

func (l *line) say(err error) {
	l.mu.Lock()
	news := err != nil || l.down
	l.down = err != nil
	observers := slices.Collect(maps.Keys(l.observers))
	l.mu.Unlock()
	if !news {
		return
	}
	for _, f := range observers {
		(*f)(err)
	}
}

// observed is a transport whose requests show whether the API server answers.
type observed struct {
	http.RoundTripper
	line *line
}

func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(r)
	switch {
	case err == nil:
		o.line.say(nil)
	case !errors.Is(err, context.Canceled):
		o.line.say(fmt.Errorf("the API server does not answer: %w", err))
	}
	return response, err
}

package topology

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// The pace of a subscription.
const (
	pingAfter        = 3 * time.Second // without a message; without an answer for as long, the connection is given up
	resubscribeFirst = 100 * time.Millisecond
	resubscribeLast  = time.Second
)

// subscribe hears +switch-master of one sentinel until ctx ends. A message only says when to look: what is true, most sentinels say.
func (f *follower) subscribe(ctx context.Context, s sentinels, address string) {
	wait := resubscribeFirst
	for ctx.Err() == nil {
		if f.listen(ctx, s, address) {
			wait = resubscribeFirst
		}
		select {
		case <-ctx.Done():
		case <-f.target.After(wait):
		}
		wait = min(2*wait, resubscribeLast)
	}
}

// listen holds one subscription until it breaks; it says whether it stood.
func (f *follower) listen(ctx context.Context, s sentinels, address string) (stood bool) {
	c := f.target.client(address, f.access)
	defer func() { _ = c.Close() }()
	p := c.Subscribe(ctx, "+switch-master")
	defer func() { _ = p.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer stop()
	pinged := false
	for {
		message, err := p.ReceiveTimeout(ctx, pingAfter)
		switch {
		case err != nil && (!isTimeout(err) || pinged || !stood):
			return stood
		case err != nil:
			if p.Ping(ctx) != nil {
				return stood
			}
			pinged = true
			continue
		}
		pinged = false
		switch m := message.(type) {
		case *redis.Subscription:
			stood = true
			f.Refresh("subscribed at " + address) // a message may have been missed before
		case *redis.Message:
			if name, from, to, ok := ParseSwitchMaster(m.Payload); ok && (s.name == "" || name == s.name) {
				f.log.Info("a sentinel announces another primary", "sentinel", address, "master", name, "was", from, "is", to)
				f.hurry("+switch-master from " + address)
			}
		}
	}
}

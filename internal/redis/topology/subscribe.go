package topology

import (
	"context"
	"time"
)

// The pace of dialling again for a subscription.
const (
	resubscribeFirst = 100 * time.Millisecond
	resubscribeLast  = time.Second
)

// subscribe follows +switch-master of one sentinel until ctx ends. A message only says when to look: what is true, most sentinels say.
func (f *follower) subscribe(ctx context.Context, s sentinels, address string) {
	c := f.target.conn(address, f.login)
	wait := resubscribeFirst
	for ctx.Err() == nil {
		_ = c.Subscribe(ctx, "SUBSCRIBE", "+switch-master", func() {
			wait = resubscribeFirst
			f.Refresh("subscribed at " + address) // a message may have been missed before
		}, func(_, payload string) {
			if name, from, to, ok := ParseSwitchMaster(payload); ok && (s.name == "" || name == s.name) {
				f.log.Info("a sentinel announces another primary", "sentinel", address, "master", name, "was", from, "is", to)
				f.hurry("+switch-master from " + address)
			}
		})
		select {
		case <-ctx.Done():
		case <-f.target.After(wait):
		}
		wait = min(2*wait, resubscribeLast)
	}
}

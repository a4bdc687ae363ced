package topology

import "context"

// subscribe follows +switch-master of one sentinel until ctx ends. A message only says when to look: what is true, most sentinels say.
func (f *follower) subscribe(ctx context.Context, s sentinels, address string) {
	f.target.conn(address, f.login).Subscribe(ctx, "SUBSCRIBE", "+switch-master", func() {
		f.Refresh("subscribed at " + address) // a message may have been missed before
	}, func(_, payload string) {
		if name, from, to, ok := ParseSwitchMaster(payload); ok && (s.name == "" || name == s.name) {
			f.log.Info("a sentinel announces another primary", "sentinel", address, "master", name, "was", from, "is", to)
			f.hurry("+switch-master from " + address)
		}
	})
}

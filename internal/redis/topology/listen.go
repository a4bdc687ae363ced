package topology

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Listener hears what servers and sentinels publish.
type Listener interface {
	// Listen hands over every message of a pattern until ctx ends, at the instant at which it came. It subscribes again where the
	// connection breaks; what is published meanwhile is lost.
	Listen(ctx context.Context, address string, login Login, pattern string, heard func(at time.Time, channel, payload string))
}

var _ Listener = (*Real)(nil)

// Listen implements Listener.
func (*Real) Listen(ctx context.Context, address string, login Login, pattern string, heard func(at time.Time, channel, payload string)) {
	c := connect(address, login)
	defer func() { _ = c.Close() }()
	for ctx.Err() == nil {
		listenOnce(ctx, c, pattern, heard)
		select {
		case <-ctx.Done():
		case <-time.After(resubscribeFirst): //nolint:forbidigo // a pause before dialling again
		}
	}
}

func listenOnce(ctx context.Context, c *redis.Client, pattern string, heard func(at time.Time, channel, payload string)) {
	p := c.PSubscribe(ctx, pattern)
	defer func() { _ = p.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer stop()
	for {
		message, err := p.ReceiveTimeout(ctx, pingAfter)
		if err != nil && (!isTimeout(err) || p.Ping(ctx) != nil) {
			return
		}
		if m, ok := message.(*redis.Message); ok {
			heard(time.Now(), m.Channel, m.Payload) //nolint:forbidigo // the instant is what is asked for
		}
	}
}

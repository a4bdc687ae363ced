package topology

import (
	"context"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Servers queries servers and sends them commands; see the methods of redis.Client. Real uses
// Redis; tests may use an implementation that fails on demand.
type Servers interface {
	Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error)
	// Ask reads INFO. An error means that no valid reply was received within the login's timeout.
	Ask(ctx context.Context, address string, login redis.Login) (Server, error)
	Shutdown(ctx context.Context, address string, login redis.Login) error
	Segfault(ctx context.Context, address string, login redis.Login) error
	Queue(ctx context.Context, key, address string, login redis.Login, commands [][]string) error
	Queued(key string) bool
	HangUp(key string)
}

// Listener subscribes to channels of servers and sentinels, as redis.Client does.
type Listener interface {
	Listen(ctx context.Context, address string, login redis.Login, pattern string, heard func(
		at time.Time, channel, payload string,
	))
}

// Real queries real servers. It is created by NewReal and ended by Close.
type Real struct{ *redis.Client }

var (
	_ Servers  = Real{}
	_ Listener = Real{}
)

// NewReal returns a Real without connections.
func NewReal() *Real {
	return &Real{redis.NewClient(nil)}
}

// Ask implements Servers.
func (r Real) Ask(ctx context.Context, address string, login redis.Login) (Server, error) {
	reply, err := r.Do(ctx, address, login, "INFO")
	if err != nil {
		return Server{}, err
	}
	text, _ := reply.(string)
	return ServerOf(address, redis.ParseInfo(text)), nil
}

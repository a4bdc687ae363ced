package topology

import (
	"context"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Servers asks servers about themselves and commands them, as redis.Client does, whose methods say how. Real talks to Redis; tests may put a
// server that fails on demand in its place.
type Servers interface {
	Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error)
	// Ask reads INFO. An error means that no answer came within the login's timeout, or one that is no INFO.
	Ask(ctx context.Context, address string, login redis.Login) (Server, error)
	Shutdown(ctx context.Context, address string, login redis.Login) error
	Segfault(ctx context.Context, address string, login redis.Login) error
	Queue(ctx context.Context, key, address string, login redis.Login, commands [][]string) error
	Queued(key string) bool
	HangUp(key string)
}

// Listener follows what servers and sentinels publish, as redis.Client does.
type Listener interface {
	Listen(ctx context.Context, address string, login redis.Login, pattern string, heard func(at time.Time, channel, payload string))
}

// Real asks real servers. NewReal makes one, Close ends it.
type Real struct{ *redis.Client }

var (
	_ Servers  = Real{}
	_ Listener = Real{}
)

// NewReal makes one that has no connection yet.
func NewReal() *Real { return &Real{redis.NewClient(nil)} }

// Ask implements Servers.
func (r Real) Ask(ctx context.Context, address string, login redis.Login) (Server, error) {
	reply, err := r.Do(ctx, address, login, "INFO")
	if err != nil {
		return Server{}, err
	}
	text, _ := reply.(string)
	return ServerOf(address, redis.ParseInfo(text)), nil
}

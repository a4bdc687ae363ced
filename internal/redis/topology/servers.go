package topology

import (
	"context"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Servers asks servers about themselves and commands them. Real talks to Redis; tests may put a server that fails on demand in its place.
// An error reply is a redis.Error (redis.IsReply); every other error leaves open whether the command was carried out.
type Servers interface {
	// Do sends one command and returns its reply, as redis.Plain makes it. The connection is kept: a server that takes no new ones can still be
	// commanded.
	Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error)
	// Ask reads INFO. An error means that no answer came within the login's timeout, or one that is no INFO.
	Ask(ctx context.Context, address string, login redis.Login) (Server, error)
	// Shutdown sends SHUTDOWN NOSAVE. A connection that breaks is the success.
	Shutdown(ctx context.Context, address string, login redis.Login) error
	// Segfault sends DEBUG SEGFAULT. A connection that breaks is the success.
	Segfault(ctx context.Context, address string, login redis.Login) error
	// Queue sends commands in one go over a connection of their own, and returns when the first was answered: after any error nothing stays
	// queued. The server works the others off one after the other, and drops those that it has not begun when the connection ends: by HangUp,
	// or with this process. Where the key has a queue already nothing is sent.
	Queue(ctx context.Context, key, address string, login redis.Login, commands [][]string) error
	// Queued says whether this process holds a queue of that key which the server has not worked off.
	Queued(key string) bool
	// HangUp ends the queue of that key, if there is one.
	HangUp(key string)
}

// Listener follows what servers and sentinels publish.
type Listener interface {
	// Listen hands over every message of a pattern until ctx ends, at the instant at which it came. It subscribes again where the
	// connection breaks; what is published meanwhile is lost.
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

package topology

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Login is how to reach a server and log in.
type Login struct {
	Username string
	Password string
	TLS      *tls.Config   // nil = plain TCP
	Trust    string        // tells one TLS from another: connections are kept by it. The certificates themselves cannot be compared
	Timeout  time.Duration // of dialling and of each command; 0 = 2 s
}

func (l Login) timeout() time.Duration { return cmp.Or(l.Timeout, 2*time.Second) }

// Servers asks servers about themselves and commands them. Real talks to Redis; tests may put a server that fails on demand in its place.
type Servers interface {
	// Do sends one command and returns its reply: string, int64, []any, map[any]any, bool, float64 or nil. An error reply is a redis.Error
	// (IsReply); every other error leaves open whether the command was carried out. The connection is kept: a server that takes no new
	// ones can still be commanded.
	Do(ctx context.Context, address string, login Login, command ...any) (any, error)
	// Ask reads INFO. An error means that no answer came within the login's timeout, or one that is no INFO.
	Ask(ctx context.Context, address string, login Login) (Server, error)
	// Shutdown sends SHUTDOWN NOSAVE. A connection that breaks is the success.
	Shutdown(ctx context.Context, address string, login Login) error
	// Segfault sends DEBUG SEGFAULT. A connection that breaks is the success.
	Segfault(ctx context.Context, address string, login Login) error
	// Queue sends commands in one go over a connection of their own, and returns when the first was answered: an error reply is a redis.Error,
	// and after any error nothing stays queued. The server works the others off one after the other, and drops those that it has not begun when the connection
	// ends: by HangUp, or with this process. Where the key has a queue already nothing is sent.
	Queue(ctx context.Context, key, address string, login Login, commands [][]string) error
	// Queued says whether this process holds a queue of that key which the server has not worked off.
	Queued(key string) bool
	// HangUp ends the queue of that key, if there is one.
	HangUp(key string)
}

// Real asks real servers. It keeps its connections: NewReal makes one, Close ends it.
type Real struct {
	mu      sync.Mutex
	clients map[identity]*kept
	queues  map[string]net.Conn // by the key of Queue
}

// identity is what tells one connection from another.
type identity struct {
	address, username, password, trust string
	secure                             bool
}

type kept struct {
	client *redis.Client
	used   time.Time
}

// keptFor is how long a connection is kept that nobody uses. A fault that lasts uses its own every few seconds.
const keptFor = 10 * time.Minute

var _ Servers = (*Real)(nil)

// NewReal makes one that has no connection yet.
func NewReal() *Real { return &Real{clients: map[identity]*kept{}, queues: map[string]net.Conn{}} }

// Close closes all connections.
func (r *Real) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, k := range r.clients {
		_ = k.client.Close()
		delete(r.clients, id)
	}
	for key, conn := range r.queues {
		_ = conn.Close()
		delete(r.queues, key)
	}
}

func (r *Real) client(address string, login Login) *redis.Client {
	id := identity{address, login.Username, login.Password, login.Trust, login.TLS != nil}
	now := time.Now() //nolint:forbidigo // how long a connection lay idle; no figure depends on it
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, k := range r.clients {
		if now.Sub(k.used) > keptFor {
			_ = k.client.Close()
			delete(r.clients, other)
		}
	}
	k := r.clients[id]
	if k == nil {
		k = &kept{client: connect(address, login)}
		r.clients[id] = k
	}
	k.used = now
	return k.client
}

// Do implements Servers.
func (r *Real) Do(ctx context.Context, address string, login Login, command ...any) (any, error) {
	reply, err := r.client(address, login).Do(ctx, command...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%v at %s: %w", command[0], address, err)
	}
	return reply, nil
}

// Ask implements Servers.
func (r *Real) Ask(ctx context.Context, address string, login Login) (Server, error) {
	info, err := r.client(address, login).Info(ctx).Result()
	if err != nil {
		return Server{}, fmt.Errorf("INFO at %s: %w", address, err)
	}
	return ParseInfo(address, info), nil
}

// Shutdown implements Servers.
func (*Real) Shutdown(ctx context.Context, address string, login Login) error {
	return end(ctx, address, login, "shutdown", "nosave")
}

// Segfault implements Servers.
func (*Real) Segfault(ctx context.Context, address string, login Login) error {
	return end(ctx, address, login, "debug", "segfault")
}

func end(ctx context.Context, address string, login Login, command ...any) error {
	c := connect(address, login)
	defer func() { _ = c.Close() }()
	// Log in first: a login that fails must not pass for a server that ended.
	if err := c.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("PING at %s: %w", address, err)
	}
	err := c.Do(ctx, command...).Err()
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return fmt.Errorf("%v at %s: the server answered and goes on", command, address)
	case errors.As(err, &reply):
		return fmt.Errorf("%v at %s: %w", command, address, err)
	case errors.Is(err, io.EOF), isNetwork(err):
		return nil
	}
	return fmt.Errorf("%v at %s: %w", command, address, err)
}

func isNetwork(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

// silent keeps go-redis from writing every failed dial to standard error: a server that is down is an answer here, and is returned.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

// connect makes a client that hides nothing: no retry, no redial, nothing sent that was not asked for.
func connect(address string, login Login) *redis.Client {
	silence()
	timeout := login.timeout()
	options := &redis.Options{
		Addr: address, Username: login.Username, Password: login.Password, TLSConfig: login.TLS,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolSize: 4, PoolTimeout: timeout, ConnMaxIdleTime: -1,
		MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	options.Dialer = alwaysDialed(redis.NewDialer(options))
	return redis.NewClient(options)
}

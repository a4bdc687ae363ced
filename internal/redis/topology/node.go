package topology

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const defaultTimeout = time.Second

func (t *Target) timeout() time.Duration {
	if t.Timeout > 0 {
		return t.Timeout
	}
	return defaultTimeout
}

// client keeps one connection to an address, and dials it again at the next command once it broke. It hides nothing: no retry, nothing sent
// that was not asked for.
func (t *Target) client(address string, access Access) *redis.Client {
	silence()
	timeout := t.timeout()
	plain := t.dial
	if plain == nil {
		plain = new(net.Dialer).DialContext
	}
	return redis.NewClient(&redis.Options{
		Addr: address, PoolSize: 1, PipelinePoolSize: -1, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, ContextTimeoutEnabled: true,
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			if access.Password == nil {
				return access.Username, "", nil
			}
			password, err := access.Password()
			return access.Username, password, err
		},
		Dialer: alwaysDialed(func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			if access.TLS == nil {
				return plain(ctx, network, address)
			}
			return access.dial(ctx, network, address)
		}),
	})
}

// alwaysDialed keeps go-redis from a pace of its own: after as many failed dials as its pool has places it returns the last error without dialling, and
// dials in the background once a second, so that a server which is back is not seen. It gets a connection from every dial, and the error of one that failed
// from its first use.
func alwaysDialed(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return undialed{fmt.Errorf("dial: %w", err)}, nil // go-redis takes one layer off
		}
		return c, nil
	}
}

// undialed is a connection that could not be made.
type undialed struct{ err error }

func (c undialed) Read([]byte) (int, error)       { return 0, c.err }
func (c undialed) Write([]byte) (int, error)      { return 0, c.err }
func (undialed) Close() error                     { return nil }
func (undialed) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (undialed) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (undialed) SetDeadline(time.Time) error      { return nil }
func (undialed) SetReadDeadline(time.Time) error  { return nil }
func (undialed) SetWriteDeadline(time.Time) error { return nil }

// dial connects by TLS.
func (a Access) dial(ctx context.Context, network, address string) (net.Conn, error) {
	config, err := a.TLS(address)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

// exec sends a pipeline whose commands are looked at one by one. Its error is one that is no command's own: a dial or a login that failed.
func exec(ctx context.Context, p redis.Pipeliner) error {
	commands, err := p.Exec(ctx)
	if slices.ContainsFunc(commands, func(c redis.Cmder) bool { return c.Err() != nil }) {
		err = nil
	}
	return err
}

// IsReply says that a server answered with an error: it understood the command and refused it.
func IsReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, redis.Nil)
}

// isRefused says that the user may not send the command, or that the server does not know it.
func isRefused(err error) bool {
	return IsReply(err) && (strings.HasPrefix(err.Error(), "NOPERM") || strings.Contains(err.Error(), "unknown command") ||
		strings.Contains(err.Error(), "unknown subcommand"))
}

// isLogin says that the login is wrong, so that asking again is in vain.
func isLogin(err error) bool {
	text := err.Error()
	return IsReply(err) && (strings.HasPrefix(text, "WRONGPASS") || strings.HasPrefix(text, "NOAUTH") || strings.HasPrefix(text, "NOPERM") ||
		strings.Contains(text, "invalid password") || strings.Contains(text, "AUTH <password> called without"))
}

// answer is what came of asking one address.
type answer struct {
	address string
	value   any
	err     error
}

// node asks one address whenever it is kicked, one question at a time.
type node struct {
	address  string
	client   *redis.Client
	kick     chan struct{} // holds one
	cancel   context.CancelFunc
	failures int // in a row; of the follower's loop
}

// run asks until ctx ends.
func (n *node) run(ctx context.Context, timeout time.Duration, ask func(context.Context, *redis.Client, string) (any, error), answers chan<- answer) {
	stop := context.AfterFunc(ctx, func() { _ = n.client.Close() }) // also under a question that nobody answers
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.kick:
		}
		within, cancel := context.WithTimeout(ctx, 2*timeout) // a dial and an answer
		value, err := ask(within, n.client, n.address)
		cancel()
		select {
		case <-ctx.Done():
			return
		case answers <- answer{address: n.address, value: value, err: err}:
		}
	}
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

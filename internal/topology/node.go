package topology

import (
	"context"
	"crypto/tls"
	"errors"
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
func client(address string, access Access, timeout time.Duration) *redis.Client {
	silence()
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
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			return access.dial(ctx, network, address, timeout)
		},
	})
}

func (a Access) dial(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var plain net.Dialer
	if a.TLS == nil {
		return plain.DialContext(ctx, network, address)
	}
	config, err := a.TLS(address)
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{NetDialer: &plain, Config: config}).DialContext(ctx, network, address)
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
	defer func() { _ = n.client.Close() }()
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

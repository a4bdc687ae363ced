package track

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// conn returns a connection to an address, which reads the credentials for each dial.
func (t *Target) conn(address string, login LoginFunc) *redis.Conn {
	timeout := t.timeout()
	return redis.NewConn(timeout, func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		d := redis.Dialer{TCP: t.tcp}
		if login != nil {
			var err error
			if d.Login, err = login(); err != nil {
				failed, ok := errors.AsType[*redis.DialError](err)
				if ok && failed.Address == "" {
					failed.Address = address
				}
				return nil, err
			}
		}
		return d.Dial(ctx, address)
	})
}

const defaultTimeout = time.Second

func (t *Target) timeout() time.Duration {
	if t.Timeout > 0 {
		return t.Timeout
	}
	return defaultTimeout
}

// question sends one command and returns the reply, converted by redis.Plain.
func question(ctx context.Context, c *redis.Conn, words ...string) (any, error) {
	v, err := c.Do(ctx, words...)
	if err != nil {
		return nil, closedOn(words, err)
	}
	return redis.Plain(v), nil
}

// closedError is a connection that was closed instead of a reply.
type closedError struct {
	command string
	error
}

func (c closedError) Error() string {
	return "it closes the connection on " + c.command +
		", as proxies do that do not pass it on: those are one server, topology Standalone"
}

func (c closedError) Unwrap() error {
	return c.error
}

// closedOn names the command on which a connection was closed.
func closedOn(words []string, err error) error {
	if !redis.IsBroken(err) {
		return err
	}
	return closedError{command: strings.Join(words[:min(len(words), 2)], " "), error: err}
}

// questions sends several commands in one write. The replies include error replies.
func questions(ctx context.Context, c *redis.Conn, commands ...[]string) ([]any, error) {
	var request []byte
	for _, words := range commands {
		request = resp.AppendCommand(request, words...)
	}
	values, err := c.Exchange(ctx, request, len(commands))
	if err != nil {
		return nil, closedOn(commands[0], err)
	}
	replies := make([]any, len(values))
	for i, v := range values {
		replies[i] = redis.Plain(v)
	}
	return replies, nil
}

// isRefused reports whether the ACL user may not run the command, or the server does not support
// it.
func isRefused(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(string(reply), "NOPERM") || isUnsupported(err)
}

// isUnsupported reports whether the server, or a proxy in front of it, has no such command. It is
// not the answer to a login.
func isUnsupported(err error) bool {
	_, atDial := errors.AsType[*redis.DialError](err)
	return !atDial && redis.IsUnsupported(err)
}

// steady is an error whose text does not change from one attempt to the next: without the port from
// which it was made.
type steady struct{ error }

func (s steady) Unwrap() error {
	return s.error
}

func (s steady) Error() string {
	name, isName := errors.AsType[*net.DNSError](s.error)
	op, isOp := errors.AsType[*net.OpError](s.error)
	closed, isClosed := errors.AsType[closedError](s.error)
	switch {
	case isClosed:
		return closed.Error()
	case redis.IsTimeout(s.error):
		return "no reply in time"
	case isName && name.IsNotFound:
		return "no such host"
	case isName:
		return "its name cannot be resolved"
	case isOp:
		return op.Err.Error()
	}
	return s.error.Error()
}

// isLogin reports whether the credentials are wrong, or do not suffice, so that a retry cannot
// succeed.
func isLogin(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && strings.HasPrefix(string(reply), "NOPERM") || redis.RejectsLogin(err)
}

// passes reports whether the failure of an address may pass by waiting.
func (t *Target) passes(err error) bool {
	return !isLogin(err) && !errors.Is(err, errAmbiguous) && (t.Lasting == nil || !t.Lasting(err))
}

// tellEvery is the time between two calls of Target.Trouble.
const tellEvery = time.Second

// teller returns a function that passes errors on to Trouble, one in tellEvery at most.
func (t *Target) teller() func(error) {
	if t.Trouble == nil {
		return func(error) {}
	}
	due := t.After(tellEvery)
	return func(err error) {
		if errors.Is(err, errNoReply) {
			return
		}
		select {
		case <-due:
			t.Trouble(err)
			due = t.After(tellEvery)
		default:
		}
	}
}

// lasting is the error of a deployment of which no address can succeed by waiting.
type lasting struct{ error }

func (l lasting) Unwrap() error {
	return l.error
}

// IsLasting reports whether Start or Detect failed for reasons that do not pass by waiting: every
// address that counts rejects the login, or fails with what Target.Lasting names.
func IsLasting(err error) bool {
	_, ok := errors.AsType[lasting](err)
	return ok
}

// answer is the result of a query to one address.
type answer struct {
	address string
	value   any
	err     error
}

// node queries one address on request, one query at a time.
type node struct {
	address  string
	conn     *redis.Conn
	kick     chan struct{} // capacity one
	cancel   context.CancelFunc
	failures int // consecutive; used by the follower's loop
}

// run handles requests until ctx ends.
func (n *node) run(
	ctx context.Context, timeout time.Duration,
	ask func(context.Context, *redis.Conn, string) (any, error), answers chan<- answer,
) {
	defer n.conn.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.kick:
		}
		within, cancel := context.WithTimeout(ctx, 2*timeout) // a dial and a reply
		value, err := ask(within, n.conn, n.address)
		cancel()
		select {
		case <-ctx.Done():
			return
		case answers <- answer{
			address: n.address,
			value:   value,
			err:     err,
		}:
		}
	}
}

package dial

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redquake/redquake/internal/redis"
)

// Hello is what the dialers of a run have learnt of HELLO: a server before Redis 6, or a proxy,
// does not know it, and is then spoken to by RESP2. The zero value is a server that knows it.
type Hello struct{ missing atomic.Pointer[string] }

// Lack notes that the servers do not know HELLO, and how they show it: connections dialled from now
// on use RESP2.
func (h *Hello) Lack(how string) {
	if h != nil {
		h.missing.CompareAndSwap(nil, &how)
	}
}

// Missing says how the servers show that they do not know HELLO; "" = they do, as far as is known.
func (h *Hello) Missing() string {
	if h == nil || h.missing.Load() == nil {
		return ""
	}
	return *h.missing.Load()
}

// Speaks is the version of the protocol of new connections: 2 or 3.
func (d *Dialer) Speaks() int {
	if d.Hello.Missing() != "" {
		return 2
	}
	return d.Protocol
}

// withoutHello accepts that a server does not know HELLO.
func (d *Dialer) withoutHello(command []string, refusal redis.Error) bool {
	if command[0] != "HELLO" || !redis.IsUnsupported(refusal) {
		return false
	}
	d.Hello.Lack("the server does not know HELLO")
	return true
}

// Ignores reports whether the servers, which answer PING, give no reply to a command: they close
// the connection, or wait until the timeout. It is asked twice over, so that a server which ends or
// starts meanwhile is not taken for a proxy.
func (d *Dialer) Ignores(ctx context.Context, command ...string) bool {
	plain := *d
	plain.Protocol, plain.OnFailure = 2, nil
	plain.Target.Database = 0 // a proxy may not know SELECT either
	c := redis.NewConn(d.Timeout, func(ctx context.Context) (net.Conn, error) {
		line, err := plain.Dial(ctx, 0, nil)
		return line.Conn, err
	})
	defer c.Close()
	for range 2 {
		if _, err := c.Do(ctx, "PING"); err != nil && !redis.IsReply(err) || redis.RejectsLogin(err) {
			return false
		}
		_, err := c.Do(ctx, command...)
		if !redis.IsBroken(err) && !redis.IsTimeout(err) {
			return false
		}
	}
	_, err := c.Do(ctx, "PING")
	return ctx.Err() == nil && (err == nil || redis.IsReply(err) && !redis.RejectsLogin(err))
}

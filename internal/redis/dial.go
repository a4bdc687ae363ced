package redis

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Login are the credentials for a server.
type Login struct {
	Username string      // "" = the default user
	Password string      // "" = none
	TLS      *tls.Config // nil = plain TCP. ServerName defaults to the dialled host
	// distinguishes TLS configurations, which cannot be compared: Client keeps connections by it
	Trust   string
	Timeout time.Duration // of a dial, and of a command, by Client; 0 = 2 s
}

func (l Login) timeout() time.Duration {
	return cmp.Or(l.Timeout, 2*time.Second)
}

// SocketScheme precedes the path of a unix socket, which takes the place of host:port.
const SocketScheme = "unix://"

// DialContext connects to host:port, or to a unix socket.
func DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(address, SocketScheme); ok {
		network, address = "unix", path
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// DialFunc makes connections, as DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Stage is the stage at which a dial failed.
type Stage int

// The stages.
const (
	StageSetup  Stage = iota // before the network: a file that cannot be read
	StageTCP                 // resolving and connecting
	StageTLS                 // the TLS handshake
	StageHello               // no reply to AUTH or a command after it
	StageAnswer              // the server replied with an error
)

// DialError is why one attempt to connect failed. As for all errors of a connection, the caller
// adds the address to the message.
type DialError struct {
	Stage   Stage
	Address string
	Command string // of StageAnswer and StageHello
	Secured bool   // TLS was established
	Err     error
}

func (e *DialError) Error() string {
	return e.Err.Error()
}

func (e *DialError) Unwrap() error {
	return e.Err
}

// Dialer establishes connections that are ready for commands.
type Dialer struct {
	Login Login
	TCP   DialFunc   // nil = DialContext
	Setup [][]string // commands after the login, such as HELLO 3
	// reports whether the connection can do without a command of Setup that the server refuses; nil =
	// it cannot
	Spares func(command []string, refusal Error) bool
}

// Dial makes one attempt: TCP, TLS, AUTH, Setup. ctx bounds all of them. The error is a DialError.
func (d *Dialer) Dial(ctx context.Context, address string) (net.Conn, error) {
	dial := d.TCP
	if dial == nil {
		dial = DialContext
	}
	c, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, &DialError{
			Stage:   StageTCP,
			Address: address,
			Err:     err,
		}
	}
	stop := expireWith(ctx, c)
	fail := func(at Stage, command string, err error) (net.Conn, error) {
		stop()
		_ = c.Close()
		return nil, &DialError{
			Stage:   at,
			Address: address,
			Command: command,
			Secured: d.Login.TLS != nil,
			Err:     err,
		}
	}
	if d.Login.TLS != nil {
		secured := tls.Client(c, d.Login.tlsFor(address))
		if err := secured.Handshake(); err != nil {
			return fail(StageTLS, "", err)
		}
		c = secured
	}
	command, err := d.greet(c, append(d.Login.auth(), d.Setup...))
	if IsReply(err) {
		return fail(StageAnswer, command, d.Login.redact(err))
	} else if err != nil {
		return fail(StageHello, command, d.Login.redact(err))
	}
	if !stop() {
		return fail(StageHello, "", context.Cause(ctx))
	}
	return c, nil
}

// expireWith interrupts the reads and writes of a connection when ctx ends. stop returns false if
// that has happened: the connection must be closed.
func expireWith(ctx context.Context, c net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

func (l Login) tlsFor(address string) *tls.Config {
	if l.TLS.ServerName != "" {
		return l.TLS
	}
	config := l.TLS.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address)
	return config
}

// auth returns the command that logs in; none without credentials.
func (l Login) auth() [][]string {
	switch {
	case l.Username != "":
		return [][]string{{"AUTH", l.Username, l.Password}}
	case l.Password != "":
		// With one argument, as the server then reports if it has no password configured.
		return [][]string{{"AUTH", l.Password}}
	}
	return nil
}

// greet sends commands in one write and reads their replies. An error is that of the command that
// is named.
func (d *Dialer) greet(c net.Conn, commands [][]string) (failed string, err error) {
	if len(commands) == 0 {
		return "", nil
	}
	var out []byte
	for _, words := range commands {
		out = resp.AppendCommand(out, words...)
	}
	if _, err := c.Write(out); err != nil {
		return commands[0][0], err
	}
	in := bufio.NewReaderSize(c, 4096)
	for _, words := range commands {
		v, err := resp.ReadValue(in)
		if err != nil {
			return words[0], err
		}
		refusal, refused := errors.AsType[Error](ErrorOf(v))
		if refused && (d.Spares == nil || !d.Spares(words, refusal)) {
			return words[0], refusal
		}
	}
	return "", nil
}

package agenttest

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/redquake/redquake/internal/agent"
)

// Agent is a served agent.
type Agent struct {
	Address string
	Done    chan struct{} // closed when Serve has returned
	Err     error         // what it returned, after Done

	cancel   context.CancelFunc
	listener *listener
}

// Serve serves an agent until the test ends, on config.Listener, which may be one of a Network, or on a port of 127.0.0.1. The credentials are
// filled into config.
func Serve(t testing.TB, credentials agent.Credentials, config agent.Config) *Agent {
	t.Helper()
	certificate, err := credentials.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if config.Listener == nil {
		if config.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	a := &Agent{Address: config.Listener.Addr().String(), Done: make(chan struct{}), listener: &listener{Listener: config.Listener, open: map[net.Conn]bool{}}}
	config.Certificate, config.Token, config.Listener = certificate, credentials.Token, a.listener
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(a.Done)
		a.Err = agent.Serve(ctx, config)
	}()
	t.Cleanup(a.Crash)
	return a
}

// Terminate is SIGTERM.
func (a *Agent) Terminate() { a.cancel() }

// Crash ends the agent as SIGKILL would: at once, every connection breaks. It returns when Serve has.
func (a *Agent) Crash() {
	a.listener.cut()
	a.cancel()
	<-a.Done
}

// Cut breaks every open connection; new ones are accepted.
func (a *Agent) Cut() { a.listener.breakAll() }

// listener remembers its connections.
type listener struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = true
	return &conn{c, l}, nil
}

func (l *listener) cut() {
	l.Listener.Close()
	l.breakAll()
}

func (l *listener) breakAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		switch c := c.(type) { // a reset, as when a process is killed
		case *net.TCPConn:
			_ = c.SetLinger(0)
		case *pipeEnd:
			c.reset()
		}
		c.Close()
	}
	clear(l.open)
}

type conn struct {
	net.Conn
	of *listener
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

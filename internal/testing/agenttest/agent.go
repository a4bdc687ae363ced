package agenttest

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/testing/memnet"
)

// Agent is a served agent.
type Agent struct {
	Address string
	Done    chan struct{} // closed when Serve has returned
	Err     error         // what it returned, after Done

	cancel   context.CancelFunc
	listener net.Listener
	cut      func()
}

// ServeTCP serves an agent on a port of 127.0.0.1 until the test ends.
func ServeTCP(t testing.TB, credentials agent.Credentials, config agent.Config) *Agent {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{Listener: tcp, open: map[net.Conn]bool{}}
	return serve(t, credentials, config, &Agent{listener: l, cut: l.cut})
}

// Terminate is SIGTERM.
func (a *Agent) Terminate() {
	a.cancel()
}

// listener records its connections.
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

type conn struct {
	net.Conn
	of *listener
}

// Serve serves an agent on a new port of a host of the network until the test ends. The credentials are filled into
// config.
func Serve(
	t testing.TB, network *memnet.Network, host string, credentials agent.Credentials, config agent.Config,
) *Agent {
	t.Helper()
	l, err := network.Listen(host + ":0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	return serve(t, credentials, config, &Agent{listener: l, cut: func() { network.Cut(address) }})
}

func serve(t testing.TB, credentials agent.Credentials, config agent.Config, a *Agent) *Agent {
	t.Helper()
	certificate, err := credentials.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	config.Certificate = certificate
	config.Token = credentials.Token
	config.Listener = a.listener
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	a.Address, a.Done = a.listener.Addr().String(), make(chan struct{})
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(a.Done)
		a.Err = agent.Serve(ctx, config)
	}()
	t.Cleanup(a.Crash)
	return a
}

// Crash ends the agent as SIGKILL would: at once, every connection breaks. It returns when Serve has.
func (a *Agent) Crash() {
	_ = a.listener.Close()
	a.cut()
	a.cancel()
	<-a.Done
}

// Cut breaks every open connection; new ones are accepted.
func (a *Agent) Cut() {
	a.cut()
}

func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as when a process is killed
		}
		c.Close()
	}
	clear(l.open)
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

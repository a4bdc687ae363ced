//go:build integration

package accuracy

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// proxy forwards TCP connections to a real redis-server.
type proxy struct {
	t      *testing.T
	server *redistest.Server
	addr   string
	gate   sync.RWMutex // locked for writing while nothing may be forwarded

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	closed   bool
	running  sync.WaitGroup
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{t: t, server: redistest.NewServer(t, redistest.Options{}), addr: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	p.listen()
	t.Cleanup(func() {
		p.shut()
		p.running.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.addr }

// listen opens the port and accepts until shut.
func (p *proxy) listen() {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.mu.Lock()
	p.listener, p.addr, p.closed = l, l.Addr().String(), false
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(c) })
		}
	})
}

// shut closes the port and breaks every connection.
func (p *proxy) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	_ = p.listener.Close()
	for c := range p.conns {
		_ = c.Close()
	}
}

// keep registers a connection for shut; false means that the proxy is shut already.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.server.Address())
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	both.Go(func() { p.forward(server, client) })
	both.Go(func() { p.forward(client, server) })
	both.Wait()
}

// forward copies from one connection to the other until either breaks, and nothing while the gate is closed.
func (p *proxy) forward(to, from net.Conn) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.gate.RLock()
			_, werr := to.Write(buffer[:n])
			p.gate.RUnlock()
			if werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// way is how a Redis is broken.
type way int

const (
	stopped way = iota // its process is stopped by a signal: connections stay open, the kernel still accepts new ones
	held               // a proxy keeps connections open and delays their data
	refused            // a proxy breaks the connections and refuses new ones
)

// breakable is a Redis whose outage a test can start and end.
type breakable interface {
	address() string
	cut()     // after its return no request is answered
	restore() // after its call requests can be answered
}

// newBreakable starts a Redis that can be broken in one way. Its server has a real-time priority: it serves on a busy machine, too, so that the truth is
// known.
func newBreakable(t *testing.T, w way) breakable {
	t.Helper()
	switch w {
	case held:
		return proxyHold{newProxy(t)}
	case refused:
		return proxyRefuse{newProxy(t)}
	case stopped:
	}
	s := stoppable{redistest.NewServer(t, redistest.Options{}), 0}
	var err error
	if s.pid, err = strconv.Atoi(s.Info("process_id")); err != nil {
		t.Fatal(err)
	}
	if err := realTime(s.pid, 30); err != nil {
		t.Fatalf("give redis-server a real-time priority, which takes root: %v", err)
	}
	return s
}

type stoppable struct {
	*redistest.Server
	pid int
}

func (s stoppable) address() string { return s.Address() }

// cut waits until the kernel has stopped the process.
func (s stoppable) cut() {
	s.Stop()
	for range 100_000 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
		if err != nil {
			s.T.Fatal(err)
		}
		if _, state, _ := strings.Cut(string(text), ") "); strings.HasPrefix(state, "T") {
			return
		}
	}
	s.T.Fatalf("process %d was not stopped", s.pid)
}

func (s stoppable) restore() { s.Cont() }

type proxyHold struct{ *proxy }

func (p proxyHold) cut() { p.gate.Lock() }

func (p proxyHold) restore() { p.gate.Unlock() }

type proxyRefuse struct{ *proxy }

func (p proxyRefuse) cut() { p.shut() }

func (p proxyRefuse) restore() { p.listen() }

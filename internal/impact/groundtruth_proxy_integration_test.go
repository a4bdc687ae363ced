//go:build integration

package impact_test

import (
	"net"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// redisServer is a real redis-server on loopback.
type redisServer struct {
	t    *testing.T
	port int
	cmd  *exec.Cmd
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &redisServer{t: t, port: l.Addr().(*net.TCPAddr).Port}
	_ = l.Close()
	r.cmd = exec.Command("redis-server", "--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // ends a stopped process too
		_ = r.cmd.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		c, err := net.Dial("tcp", r.address())
		if err == nil {
			_ = c.Close()
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not listen: %v", err)
		}
	}
}

func (r *redisServer) address() string { return "127.0.0.1:" + strconv.Itoa(r.port) }

func (r *redisServer) signal(s syscall.Signal) {
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Error(err)
	}
}

// proxy forwards TCP connections to a real redis-server.
type proxy struct {
	t      *testing.T
	server *redisServer
	addr   string
	gate   sync.RWMutex // held for writing while nothing may be forwarded

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	closed   bool
	running  sync.WaitGroup
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{t: t, server: startRedis(t), addr: "127.0.0.1:0", conns: map[net.Conn]bool{}}
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

// keep notes a connection for shut; false means that it is too late.
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
	server, err := net.Dial("tcp", p.server.address())
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

// proxyHold keeps connections and holds their bytes back.
type proxyHold struct{ *proxy }

func newProxyHold(t *testing.T) breakable { return proxyHold{newProxy(t)} }

func (p proxyHold) cut() { p.gate.Lock() }

func (p proxyHold) mend() { p.gate.Unlock() }

// proxyRefuse breaks the connections and refuses new ones.
type proxyRefuse struct{ *proxy }

func newProxyRefuse(t *testing.T) breakable { return proxyRefuse{newProxy(t)} }

func (p proxyRefuse) cut() { p.shut() }

func (p proxyRefuse) mend() { p.listen() }

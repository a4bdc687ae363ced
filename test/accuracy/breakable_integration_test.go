//go:build integration

package accuracy

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/await"
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

func (p *proxy) target() plan.Target { return plan.Target{Addresses: []string{p.addr}} }

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
	stopped  way = iota // its process is stopped by a signal: connections stay open, the kernel still accepts new ones
	held                // a proxy keeps connections open and delays their data
	refused             // a proxy breaks the connections and refuses new ones
	shard               // one of three primaries of a cluster is stopped
	misconf             // writes fail with MISCONF, as after a failed BGSAVE; reads are answered
	readonly            // writes fail with READONLY, as at a replica; reads are answered
)

// figure is one of an impact that an outage is to be found in.
type figure struct {
	name string // added to that of the experiment
	of   func(*impact.Impact) durations.Bounded
}

func (w way) figures() []figure {
	if w != shard {
		return []figure{{"", func(m *impact.Impact) durations.Bounded { return m.Outage.Bounded }}}
	}
	return []figure{
		{": shardOutage", func(m *impact.Impact) durations.Bounded { return m.Outages.Shard.Bounded }},
		{": probeOutage", func(m *impact.Impact) durations.Bounded { return m.Outages.Probe }},
	}
}

// breakable is a Redis whose outage a test can start and end.
type breakable interface {
	target() plan.Target
	address() string // of the server that is broken, as clients see it
	cut()            // after its return no request is answered, or no write
	restore()        // after its call requests can be answered
}

// newBreakable starts a Redis that can be broken in one way. Its servers have a high priority: they serve on a busy
// machine, too, so that the truth is known.
func newBreakable(t *testing.T, w way) breakable {
	t.Helper()
	switch w {
	case held:
		return proxyHold{newProxy(t)}
	case refused:
		return proxyRefuse{newProxy(t)}
	case shard:
		// longer than any outage: the other shards go on
		cluster := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{NodeTimeout: time.Minute})
		all := make([]stoppable, 0, 3)
		for _, s := range cluster.Servers() {
			all = append(all, favoured(t, s))
		}
		return stoppedShard{all[1], all[0].Address()}
	case misconf:
		return newMisconf(t)
	case readonly:
		s, control := newControlled(t)
		return failing{s, control, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"}
	case stopped:
	}
	return favoured(t, redistest.NewServer(t, redistest.Options{}))
}

// favoured gives a server a high priority, except in namespaces of its own: these do not allow that.
func favoured(t *testing.T, server *redistest.Server) stoppable {
	t.Helper()
	s := stoppable{server, 0}
	var err error
	if s.pid, err = strconv.Atoi(s.Info("process_id")); err != nil {
		t.Fatal(err)
	}
	if err := favour(s.pid); err != nil && os.Getenv(ownNetwork) == "" {
		t.Fatalf("give redis-server a high priority, which takes root: %v", err)
	}
	return s
}

type stoppable struct {
	*redistest.Server
	pid int
}

func (s stoppable) address() string { return s.Address() }

func (s stoppable) target() plan.Target { return plan.Target{Addresses: []string{s.Address()}} }

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

// stoppedShard is a primary of a cluster. Clients find it through another one.
type stoppedShard struct {
	stoppable
	other string
}

func (s stoppedShard) target() plan.Target {
	return plan.Target{Topology: plan.TopologyCluster, Addresses: []string{s.other}}
}

// failing is a server that replies to writes with an error between two commands.
type failing struct {
	stoppable
	control       net.Conn // a Unix socket, which the capture does not see
	fails, serves string   // the commands
}

// newControlled starts a server and connects to its Unix socket.
func newControlled(t *testing.T) (stoppable, net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "redquake") // a short path: that of a socket is limited to 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "redis.sock")
	s := favoured(t, redistest.NewServer(t, redistest.Options{Config: []string{"unixsocket " + path}}))
	control, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close() })
	return s, control
}

// newMisconf starts a server whose BGSAVE has failed: the name of its file is that of a folder.
func newMisconf(t *testing.T) failing {
	t.Helper()
	s, control := newControlled(t)
	s.Do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no", "save", "3600 1000000000")
	name, _ := redistest.Pairs(s.Do("CONFIG", "GET", "dbfilename"))["dbfilename"]
	if err := os.Mkdir(filepath.Join(s.Dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Do("BGSAVE")
	await.Until(t, "a failed BGSAVE", func() error {
		if status := s.Info("rdb_last_bgsave_status"); status != "err" {
			return fmt.Errorf("its status is %q", status)
		}
		return nil
	})
	const setting = "CONFIG SET stop-writes-on-bgsave-error "
	return failing{s, control, setting + "yes", setting + "no"}
}

func (f failing) cut() { f.command(f.fails) }

func (f failing) restore() { f.command(f.serves) }

func (f failing) command(text string) {
	reply := make([]byte, 128)
	_, err := f.control.Write([]byte(text + "\r\n"))
	n := 0
	if err == nil {
		n, err = f.control.Read(reply)
	}
	if err != nil || !strings.HasPrefix(string(reply[:n]), "+OK") {
		f.T.Errorf("%s: %q, %v", text, reply[:n], err)
	}
}

// Package memredis is a Redis in memory on a memnet.Network, for tests in virtual time: one command after the other,
// each at a cost that the test sets. It supports strings, bitmaps and the commands of a load and its observer; it
// refuses others with Redis's error. It has no replicas, and loses its data when killed.
package memredis

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/memnet"
)

// Options are how a server is set up. The zero value has no password and takes no time.
type Options struct {
	Password string        // of the default user
	Cost     time.Duration // of every command
}

// Server is one Redis. Its methods may be called from any goroutine of its bubble.
type Server struct {
	t       testing.TB
	network *memnet.Network
	address string
	options Options

	mu       sync.Mutex // never held while waiting
	process  *process   // nil = killed
	runs     int        // processes so far
	cost     time.Duration
	readOnly bool
	loading  bool
	moved    string            // reply to commands on keys without ASKING before them; "" = none
	limit    int               // maxmemory, in bytes
	policy   string            // maxmemory-policy
	fixed    map[string]string // replies of commands that the test chose
	calls    map[string]int
}

// process is one life of the server.
type process struct {
	listener net.Listener
	done     chan struct{} // closed by Kill
	turn     chan struct{} // holds a token while a command runs: one at a time, in the order in which they came
	all      sync.WaitGroup

	// The server's mutex guards these.
	paused  chan struct{} // closed when it continues; nil = running
	conns   map[net.Conn]bool
	keys    map[string]entry
	began   time.Time
	busy    time.Duration
	served  int
	evicted int
	clients int // so far: CLIENT ID
	slow    []slowEntry

	subscribers map[string][]*session // by channel
}

// Start starts a server that listens at address; it is killed when the test ends.
func Start(t testing.TB, network *memnet.Network, address string, o Options) *Server {
	t.Helper()
	s := &Server{
		t: t, network: network, address: address, options: o, cost: o.Cost, policy: "noeviction",
		fixed: map[string]string{}, calls: map[string]int{},
	}
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// Address is its address.
func (s *Server) Address() string {
	return s.address
}

// Restart starts a process without data. One that runs is killed before.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	listener, err := s.network.Listen(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &process{
		listener: listener, done: make(chan struct{}), turn: make(chan struct{}, 1),
		conns: map[net.Conn]bool{}, keys: map[string]entry{}, began: time.Now(), subscribers: map[string][]*session{},
	}
	s.mu.Lock()
	s.process = p
	s.runs++
	s.mu.Unlock()
	p.all.Go(func() { s.accept(p) })
}

// Kill ends the process at once, as SIGKILL does: its connections end, dials are refused, the data is lost, a command
// that runs has no effect.
// It does nothing if it was killed before.
func (s *Server) Kill() {
	s.mu.Lock()
	p := s.process
	s.process = nil
	if p == nil {
		s.mu.Unlock()
		return
	}
	close(p.done)
	conns := slices.Collect(maps.Keys(p.conns))
	s.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range conns {
		_ = c.Close()
	}
	p.all.Wait()
}

// Continue resumes a frozen process.
func (s *Server) Continue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.process; p != nil && p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// SetReadOnly makes the server a replica, which refuses writes, or a primary again.
func (s *Server) SetReadOnly(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readOnly = on
}

// SetLoading makes the server refuse commands as Redis does while it loads its data, or serve them again.
func (s *Server) SetLoading(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = on
}

// SetImporting makes the server a node of a cluster that imports a slot from another node: it performs a command on a
// key only if ASKING is the command before it.
func (s *Server) SetImporting(slot uint16, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = fmt.Sprintf("MOVED %d %s", slot, from)
}

// SetMemory sets maxmemory, in bytes, and maxmemory-policy. The server evicts nothing by itself: see Evict.
func (s *Server) SetMemory(limit int, policy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.policy = limit, policy
}

// Evict removes keys, as Redis does at maxmemory, and counts them, whether they exist or not.
func (s *Server) Evict(keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.process; p != nil {
		p.evicted += len(keys)
		for _, key := range keys {
			delete(p.keys, key)
		}
	}
}

// SetCost sets how long a command takes from now on.
func (s *Server) SetCost(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cost = d
}

// NoReply is the Answer of a command that never gets one, such as BLPOP of a list to which nobody adds.
const NoReply = "no reply"

// Answer fixes the reply to a command, such as "-OOM command not allowed when used memory > 'maxmemory'."; "" restores
// the server's own.
// A reply to "SENTINEL MYID" takes precedence over one to "SENTINEL".
func (s *Server) Answer(command, reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fixed[strings.ToUpper(command)] = reply; reply == "" {
		delete(s.fixed, strings.ToUpper(command))
	}
}

// Calls is how often a command, or one with a subcommand such as "CLIENT PAUSE", was performed or refused, over all
// processes.
func (s *Server) Calls(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[strings.ToUpper(command)]
}

// Get is the value of a key.
func (s *Server) Get(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return "", false
	}
	e, ok := s.process.find(key)
	return e.value, ok
}

// Keys returns the keys that contain a text, in no order.
func (s *Server) Keys(text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	if s.process == nil {
		return nil
	}
	for key := range s.process.keys {
		if strings.Contains(key, text) {
			found = append(found, key)
		}
	}
	return found
}

// Expires reports whether a key exists and has a TTL.
func (s *Server) Expires(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return false
	}
	e, ok := s.process.find(key)
	return ok && !e.expires.IsZero()
}

// Put sets a key without a command, as replication does.
func (s *Server) Put(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.keys[key] = entry{value: value}
	}
}

// Clients is how many connections are open now.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return len(s.process.conns)
}

func (s *Server) accept(p *process) {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.process != p {
			s.mu.Unlock()
			_ = c.Close()
			return
		}
		p.conns[c] = true
		p.clients++
		session := &session{
			server:  s,
			process: p,
			conn:    c,
			id:      p.clients,
			version: 2,
			allowed: s.options.Password == "",
		}
		s.mu.Unlock()
		p.all.Go(func() {
			session.serve(c)
			s.mu.Lock()
			delete(p.conns, c)
			session.unsubscribe()
			s.mu.Unlock()
			_ = c.Close()
		})
	}
}

// session is one connection.
type session struct {
	server  *Server
	process *process
	conn    net.Conn
	id      int
	version int // of RESP
	allowed bool
	asked   bool // the command before was ASKING
}

// serve performs commands and sends replies until the connection or the process ends. All commands of one read are one
// turn, as in Redis.
func (c *session) serve(conn net.Conn) {
	in := bufio.NewReaderSize(conn, 64<<10)
	var out []byte
	for {
		v, err := resp.ReadValue(in)
		if err != nil {
			return
		}
		select {
		case c.process.turn <- struct{}{}:
		case <-c.process.done:
			return
		}
		out = out[:0]
		for {
			var alive bool
			if out, alive = c.perform(out, v); !alive {
				return
			}
			if in.Buffered() == 0 {
				break
			}
			if v, err = resp.ReadValue(in); err != nil {
				break
			}
		}
		_, err2 := conn.Write(out) // never waits
		<-c.process.turn
		if err != nil || err2 != nil {
			return
		}
	}
}

// perform waits for a command's cost and appends its reply; false if the process has ended meanwhile.
func (c *session) perform(out []byte, v resp.Value) ([]byte, bool) {
	if !c.running() {
		return out, false
	}
	s := c.server
	words := make([]string, len(v.Items))
	for i := range v.Items {
		words[i] = v.Items[i].Text
	}
	if len(words) == 0 {
		return append(out, "-ERR Protocol error\r\n"...), true
	}
	s.mu.Lock()
	cost := s.cost
	s.mu.Unlock()
	if words[0] = strings.ToUpper(words[0]); words[0] == "DEBUG" {
		cost += debugSleep(words)
	}
	if cost > 0 {
		timer := time.NewTimer(cost)
		select {
		case <-timer.C:
		case <-c.process.done:
			timer.Stop()
			return out, false
		}
		if !c.running() {
			return out, false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[words[0]]++
	if len(words) > 1 {
		s.calls[words[0]+" "+strings.ToUpper(words[1])]++
	}
	c.process.account(words, cost)
	return c.reply(out, words), true
}

// Stop freezes the process, as SIGSTOP does: its connections stay open without replies, and dials succeed.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.process; p != nil && p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// running waits while the process is frozen; false if it has ended.
func (c *session) running() bool {
	for {
		c.server.mu.Lock()
		paused := c.process.paused
		c.server.mu.Unlock()
		if paused == nil {
			break
		}
		select {
		case <-paused:
		case <-c.process.done:
			return false
		}
	}
	select {
	case <-c.process.done:
		return false
	default:
		return true
	}
}

func debugSleep(words []string) time.Duration {
	if len(words) != 3 || !strings.EqualFold(words[1], "SLEEP") {
		return 0
	}
	var seconds float64
	_, _ = fmt.Sscan(words[2], &seconds)
	return time.Duration(seconds * float64(time.Second))
}

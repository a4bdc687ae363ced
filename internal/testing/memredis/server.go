// Package memredis is a Redis in memory on a memnet.Network, for tests in virtual time and in real time: one command
// after the other, each at a cost that the test sets. All tests that need no real server use it, through the client
// that the product uses.
//
// It supports strings, bitmaps, and the commands of a load, of its observer and of faults; it refuses others with
// Redis's error. What it is, it is by its State, from which all replies follow; an integration test compares them with
// those of a real server. It has no data of others: a replica copies nothing, and all is lost when it is killed.
//
// Faults of servers are methods: Kill, Stop, SetCost, LoseChanges. A reply that no command of it gives is scripted, by
// Answer or Script, for the command that is tested.
package memredis

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
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
	Memory   int           // bytes of requests that are not complete, beyond which the process ends; 0 = any
	State    State
}

// Server is one Redis. Its methods may be called from any goroutine of its bubble.
type Server struct {
	group   *Group
	address string
	options Options

	mu           *sync.Mutex // of the group
	process      *process    // nil = killed
	runs         int         // processes so far
	state        State
	config       map[string]string // settings that are not the defaults
	cost         time.Duration
	losesChanges bool
	moved        string // reply to commands on keys without ASKING before them; "" = none
	scripts      map[string]Script
	calls        map[string]int
	answered     []Span
}

// pause is CLIENT PAUSE.
type pause struct {
	until   time.Time
	writes  bool          // only writes
	changed chan struct{} // closed when another begins, or it is ended
}

// process is one life of the server.
type process struct {
	stop func() error  // the listening
	done chan struct{} // closed by Kill
	turn chan struct{} // holds a token while a command runs: one at a time, in the order in which they came
	all  sync.WaitGroup

	// The server's mutex guards these.
	paused   chan struct{} // closed when it continues; nil = running
	sessions map[*session]bool
	keys     map[string]entry
	config   map[string]string
	began    time.Time
	busy     time.Duration
	stats    map[string]*stat // as in INFO commandstats
	served   int
	evicted  int
	clients  int // so far: CLIENT ID
	slow     []slowEntry
	running  bool // a command
	held     int  // bytes of requests that are not complete

	pause pause

	subscribers, patterns map[string][]*session // by channel, and by pattern
}

// Start starts a server that listens at address; it is killed when the test ends.
func Start(t testing.TB, network *memnet.Network, address string, o Options) *Server {
	t.Helper()
	s := NewGroup(network).Add(address, o)
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// Address is its address.
func (s *Server) Address() string {
	return s.address
}

// Restart starts a process without data. One that runs is killed before. It panics if something else has the address.
func (s *Server) Restart() {
	s.Kill()
	p := &process{
		done: make(chan struct{}), turn: make(chan struct{}, 1), pause: pause{changed: make(chan struct{})},
		sessions: map[*session]bool{}, keys: map[string]entry{}, config: maps.Clone(settings),
		stats: map[string]*stat{}, began: time.Now(),
		subscribers: map[string][]*session{}, patterns: map[string][]*session{},
	}
	if err := s.begin(p); err != nil {
		panic(err)
	}
}

// begin has a process listen, and makes it that of the server.
func (s *Server) begin(p *process) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stop, err = s.group.network.Serve(s.address, func(c net.Conn) { s.serve(p, c) })
	if err != nil {
		return err
	}
	maps.Copy(p.config, s.config)
	s.process = p
	s.runs++
	s.answered = append(s.answered, Span{From: p.began})
	return nil
}

// Kill ends the process at once, as SIGKILL does: its connections end, dials are refused, the data is lost, a command
// that runs has no effect.
// It does nothing if it was killed before.
func (s *Server) Kill() {
	s.mu.Lock()
	p := s.process
	if p != nil {
		s.end(p)
	}
	s.mu.Unlock()
	if p != nil {
		p.all.Wait()
	}
}

// end is Kill, without waiting for the connections. The caller holds the mutex.
func (s *Server) end(p *process) {
	if s.process != p {
		return
	}
	s.process = nil
	s.silent()
	close(p.done)
	_ = p.stop()
	for c := range p.sessions {
		_ = c.conn.Close()
	}
}

// Running reports whether a process runs.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil
}

// Exited is closed when the present process has ended; closed if none runs.
func (s *Server) Exited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return s.process.done
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

// Continue resumes a frozen process.
func (s *Server) Continue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.process; p != nil && p.paused != nil {
		close(p.paused)
		p.paused = nil
		s.answered = append(s.answered, Span{From: time.Now()})
	}
}

// SetImporting makes the server a node of a cluster that imports a slot from another node: it performs a command on a
// key only if ASKING is the command before it.
func (s *Server) SetImporting(slot uint16, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = fmt.Sprintf("MOVED %d %s", slot, from)
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
	return len(s.process.sessions)
}

// serve serves a connection of a process.
func (s *Server) serve(p *process, conn net.Conn) {
	s.mu.Lock()
	if s.process != p {
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	p.clients++
	c := &session{
		server: s, process: p, conn: conn, id: p.clients, version: 2, allowed: s.options.Password == "",
		opened: time.Now(), used: time.Now(),
	}
	p.sessions[c] = true
	p.all.Add(1)
	s.mu.Unlock()
	defer p.all.Done()
	c.serve(conn)
	s.mu.Lock()
	delete(p.sessions, c)
	c.unsubscribe()
	s.mu.Unlock()
	_ = conn.Close()
}

// session is one connection.
type session struct {
	server       *Server
	process      *process
	conn         net.Conn
	id           int
	version      int // of RESP
	allowed      bool
	asked        bool   // the command before was ASKING
	hangsUp      bool   // instead of the reply
	subscribed   int    // to channels and patterns
	last         string // the command before, as CLIENT LIST shows it
	opened, used time.Time
}

// serve performs commands and sends replies until the connection or the process ends. All commands of one read are one
// turn, as in Redis.
func (c *session) serve(conn net.Conn) {
	in := bufio.NewReaderSize(conn, 64<<10)
	var out []byte
	for {
		if c.hold(in) {
			return
		}
		v, err := resp.ReadValue(in)
		if err != nil {
			return
		}
		if !c.takeTurn() {
			return
		}
		out = out[:0]
		for {
			words := wordsOf(v)
			if c.paused(words) {
				_, _ = conn.Write(out)
				out = out[:0]
				if !c.awaitPause(words) {
					return
				}
			}
			var alive bool
			if out, alive = c.perform(out, words); !alive {
				return
			}
			if c.hangsUp {
				err = io.EOF
				break
			}
			if in.Buffered() == 0 {
				break
			}
			if v, err = resp.ReadValue(in); err != nil {
				break
			}
		}
		var err2 error
		if !c.hangsUp {
			_, err2 = conn.Write(out) // never waits
		}
		<-c.process.turn
		if err != nil || err2 != nil {
			return
		}
	}
}

func (c *session) takeTurn() bool {
	select {
	case c.process.turn <- struct{}{}:
		return true
	case <-c.process.done:
		return false
	}
}

func wordsOf(v resp.Value) []string {
	words := make([]string, len(v.Items))
	for i := range v.Items {
		words[i] = v.Items[i].Text
	}
	if len(words) > 0 {
		words[0] = strings.ToUpper(words[0])
	}
	return words
}

// perform waits for a command's cost and appends its reply; false if the process has ended meanwhile.
func (c *session) perform(out []byte, words []string) ([]byte, bool) {
	if !c.running() {
		return out, false
	}
	s := c.server
	if len(words) == 0 {
		return append(out, "-ERR Protocol error\r\n"...), true
	}
	script := c.script(words)
	s.mu.Lock()
	cost := s.cost
	if words[0] == "DEBUG" && script == nil {
		cost += debugSleep(words)
	}
	c.process.running = cost > 0
	s.mu.Unlock()
	if cost > 0 && !c.spend(cost) {
		return out, false
	}
	var scripted any
	if script != nil {
		scripted = script(s.address, words)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != c.process {
		return out, false
	}
	c.process.running = false
	s.calls[words[0]]++
	c.last, c.used = strings.ToLower(words[0]), time.Now()
	if len(words) > 1 {
		s.calls[words[0]+" "+strings.ToUpper(words[1])]++
	}
	begin := len(out)
	switch moved := c.movedTo(words[0], commands[words[0]].write); {
	case moved != "":
		out = fail(out, "%s", moved)
	case scripted != nil:
		out = c.encode(out, scripted)
	default:
		out = c.reply(out, words)
	}
	refused := len(out) > begin && out[begin] == '-'
	if !refused {
		c.process.account(words, cost)
	}
	if s.group.watch != nil {
		s.group.watch(Command{s.address, words, refused})
	}
	return out, s.process == c.process
}

// spend waits for the cost of a command; false if the process has ended meanwhile.
func (c *session) spend(cost time.Duration) bool {
	timer := time.NewTimer(cost)
	select {
	case <-timer.C:
	case <-c.process.done:
		timer.Stop()
		return false
	}
	return c.running()
}

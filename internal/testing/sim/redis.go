package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Redis are the servers of a test by their addresses, as faults reach them: it implements topology.Servers. Load uses
// it to decide which requests succeed.
type Redis struct {
	mu      sync.Mutex
	servers map[string]*Server
	made    int
	check   record.LedgerCheck // what a check of a ledger finds instead of the truth, if it fails
	takes   func(start time.Time) time.Duration
}

// NewRedis has no server yet.
func NewRedis() *Redis {
	return &Redis{servers: map[string]*Server{}}
}

// Take lets each request of a load that begins at an instant take so much longer.
func (r *Redis) Take(takes func(start time.Time) time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = takes
}

// taking is how much longer each request of a load takes.
func (r *Redis) taking(start time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.takes == nil {
		return 0
	}
	return r.takes(start)
}

// Server is one server process after the other at one address.
type Server struct {
	of       *Redis
	address  string
	password string

	runID    string
	settings map[string]string
	stopped  bool          // by SIGSTOP: it accepts connections and does not respond
	mute     bool          // what it responds to a change of settings is lost
	exited   chan struct{} // closed while no process runs
	spans    []span        // in which it answered
	empty    time.Time     // when it last had no data
}

// span is a stretch of time; to is zero while it lasts.
type span struct{ from, to time.Time }

// Add makes a server without a process.
func (r *Redis) Add(address, password string) *Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Server{
		of:       r,
		address:  address,
		password: password,
		exited:   make(chan struct{}),
	}
	close(s.exited)
	r.servers[address] = s
	return s
}

// Start runs a process. It responds at once.
func (s *Server) Start() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.made++
	s.runID = fmt.Sprintf("%040x", s.of.made)
	s.stopped = false
	s.exited = make(chan struct{})
	s.settings = map[string]string{
		"hz":               "10",
		"maxmemory":        "0",
		"maxmemory-policy": "noeviction",
	}
	s.empty = time.Now()
	s.spans = append(s.spans, span{from: s.empty})
}

// Flush removes all data, as FLUSHALL does.
func (s *Server) Flush() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.empty = time.Now()
}

// FailChecks lets all loads fail to read their ledgers from now on.
func (r *Redis) FailChecks(check record.LedgerCheck) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check = check
}

// failedCheck is what a check of a ledger finds instead of the truth; the zero value if it does not fail.
func (r *Redis) failedCheck() record.LedgerCheck {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.check
}

// Kill ends the process as SIGKILL does.
func (s *Server) Kill() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.end()
}

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.exited
}

// Setting is the value that CONFIG GET shows, or the text of its error.
func (s *Server) Setting(name string) string {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	select {
	case <-s.exited:
		return "connection refused"
	default:
	}
	if s.stopped {
		return "timeout"
	}
	return s.settings[name]
}

// Downtime is the last time span in which no process responded; zero if there was none, or it has not ended.
func (s *Server) Downtime() time.Duration {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	n := len(s.spans)
	if n < 2 {
		return 0
	}
	return s.spans[n-1].from.Sub(s.spans[n-2].to)
}

// keepsSince is since when the server at an address has had its data.
func (r *Redis) keepsSince(address string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers[address].empty
}

// answered reports whether the server at an address responded at a past instant.
func (r *Redis) answered(address string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.servers[address]
	return s != nil && slices.ContainsFunc(s.spans, func(p span) bool {
		return !at.Before(p.from) &&
			(p.to.IsZero() || at.Before(p.to))
	})
}

// Do implements topology.Servers.
func (r *Redis) Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error) {
	s, err := r.reach(ctx, address, login)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	words := make([]string, len(command))
	for i := range command {
		words[i] = fmt.Sprint(command[i])
	}
	switch name := strings.ToUpper(strings.Join(words[:min(2, len(words))], " ")); {
	case strings.HasPrefix(name, "INFO"):
		return s.info(), nil
	case name == "ACL DRYRUN", name == "PING":
		return "OK", nil
	case name == "CONFIG GET":
		var found []any
		for _, setting := range words[2:] {
			if value, known := s.settings[setting]; known {
				found = append(found, setting, value)
			}
		}
		return found, nil
	case name == "CONFIG SET":
		changed := map[string]string{}
		for i := 2; i+1 < len(words); i += 2 {
			changed[words[i]] = words[i+1]
		}
		before := maps.Clone(s.settings)
		maps.Copy(s.settings, changed)
		if s.mute && !maps.Equal(before, s.settings) {
			return nil, fmt.Errorf("read tcp %s: connection reset by peer", address)
		}
		return "OK", nil
	}
	return nil, redis.Error("ERR unknown command '" + words[0] + "'")
}

// Ask implements topology.Servers.
func (r *Redis) Ask(ctx context.Context, address string, login redis.Login) (topology.Server, error) {
	s, err := r.reach(ctx, address, login)
	if err != nil {
		return topology.Server{}, err
	}
	defer r.mu.Unlock()
	return topology.ServerOf(address, redis.ParseInfo(s.info())), nil
}

func (s *Server) info() string {
	up := time.Since(s.spans[len(s.spans)-1].from)
	return fmt.Sprintf(
		"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n"+
			"config_file:\r\n# Persistence\r\nloading:0\r\naof_enabled:0\r\n"+
			"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Commandstats\r\ncmdstat_config|get:calls=1,usec=1\r\n",
		s.runID, int(up.Seconds()))
}

// Segfault implements topology.Servers.
func (r *Redis) Segfault(ctx context.Context, address string, login redis.Login) error {
	return r.Shutdown(ctx, address, login)
}

// Shutdown implements topology.Servers.
func (r *Redis) Shutdown(ctx context.Context, address string, login redis.Login) error {
	s, err := r.reach(ctx, address, login)
	if err != nil {
		return err
	}
	defer r.mu.Unlock()
	s.end()
	return nil
}

func (s *Server) end() {
	select {
	case <-s.exited:
	default:
		s.silent()
		close(s.exited)
	}
}

// reach returns a server that responds, with r locked. It waits for one that does not, as long as a client would.
func (r *Redis) reach(ctx context.Context, address string, login redis.Login) (*Server, error) {
	r.mu.Lock()
	s := r.servers[address]
	down := s == nil
	if !down {
		select {
		case <-s.exited:
			down = true
		default:
		}
	}
	switch {
	case ctx.Err() != nil:
		r.mu.Unlock()
		return nil, ctx.Err()
	case down:
		r.mu.Unlock()
		return nil, fmt.Errorf("dial tcp %s: connection refused", address)
	case s.stopped:
		r.mu.Unlock()
		patience := login.Timeout
		if patience == 0 {
			patience = 2 * time.Second
		}
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, fmt.Errorf("read tcp %s: i/o timeout", address)
		}
	case s.password != login.Password:
		r.mu.Unlock()
		return nil, redis.Error("NOAUTH Authentication required.")
	}
	return s, nil
}

// Stop is SIGSTOP.
func (s *Server) Stop() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.stopped = true
	s.silent()
}

// LoseResponses lets the responses be lost to every CONFIG SET that changes something.
func (s *Server) LoseResponses() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.mute = true
}

// Continue is SIGCONT.
func (s *Server) Continue() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.stopped = false
	s.spans = append(s.spans, span{from: time.Now()})
}

func (s *Server) silent() {
	if last := &s.spans[len(s.spans)-1]; last.to.IsZero() {
		last.to = time.Now()
	}
}

// Queue implements topology.Servers: no fault of the tests in virtual time needs one.
func (*Redis) Queue(context.Context, string, string, redis.Login, [][]string) error {
	return redis.Error("ERR no queue in this world")
}

// Queued implements topology.Servers.
func (*Redis) Queued(string) bool {
	return false
}

// HangUp implements topology.Servers.
func (*Redis) HangUp(string) {}

// Close is for a topology.Real in its place.
func (*Redis) Close() {}

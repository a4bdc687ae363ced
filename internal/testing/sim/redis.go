package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// Redis are the servers of a test by their addresses, as faults reach them: servers in memory behind the product's own
// client. It implements topology.Servers. Load uses it to decide which requests succeed.
type Redis struct {
	network *memnet.Network
	group   *memredis.Group

	mu      sync.Mutex
	emptied map[string]time.Time // when a server last had no data
	check   record.LedgerCheck   // what a check of a ledger finds instead of the truth, if it fails
	takes   func(start time.Time) time.Duration
}

// NewRedis has no server yet.
func NewRedis() *Redis {
	network := memnet.New()
	return &Redis{
		network: network,
		group:   memredis.NewGroup(network),
		emptied: map[string]time.Time{},
	}
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
	*memredis.Server
	of *Redis
}

// Add makes a server without a process.
func (r *Redis) Add(address, password string) *Server {
	return &Server{r.group.Add(address, memredis.Options{Password: password}), r}
}

// Start runs a process. It responds at once.
func (s *Server) Start() {
	s.Restart()
	s.Flush()
}

// Flush removes all data, as FLUSHALL does.
func (s *Server) Flush() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.emptied[s.Address()] = time.Now()
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

// Setting is the value that CONFIG GET shows, or the text of its error.
func (s *Server) Setting(name string) string {
	spans := s.Answered()
	switch value := s.Server.Setting(name); {
	case value == "":
		return "connection refused"
	case !spans[len(spans)-1].To.IsZero():
		return "timeout"
	default:
		return value
	}
}

// Downtime is the last time span in which no process responded; zero if there was none, or it has not ended.
func (s *Server) Downtime() time.Duration {
	spans := s.Answered()
	n := len(spans)
	if n < 2 {
		return 0
	}
	return spans[n-1].From.Sub(spans[n-2].To)
}

// LoseResponses lets the responses be lost to every CONFIG SET that changes something.
func (s *Server) LoseResponses() {
	s.LoseChanges()
}

// keepsSince is since when the server at an address has had its data.
func (r *Redis) keepsSince(address string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.emptied[address]
}

// answered reports whether the server at an address responded at a past instant.
func (r *Redis) answered(address string, at time.Time) bool {
	s := r.group.At(address)
	return s != nil && slices.ContainsFunc(s.Answered(), func(p memredis.Span) bool {
		return !at.Before(p.From) && (p.To.IsZero() || at.Before(p.To))
	})
}

// client is the product's client, for one command: connections that stay open would outlive the test.
func (r *Redis) client() topology.Real {
	return topology.Real{Client: redis.NewClient(r.network.Dial)}
}

// Do implements topology.Servers.
func (r *Redis) Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error) {
	c := r.client()
	defer c.Close()
	return c.Do(ctx, address, login, command...)
}

// Ask implements topology.Servers.
func (r *Redis) Ask(ctx context.Context, address string, login redis.Login) (topology.Server, error) {
	c := r.client()
	defer c.Close()
	return c.Ask(ctx, address, login)
}

// Segfault implements topology.Servers.
func (r *Redis) Segfault(ctx context.Context, address string, login redis.Login) error {
	c := r.client()
	defer c.Close()
	return c.Segfault(ctx, address, login)
}

// Shutdown implements topology.Servers.
func (r *Redis) Shutdown(ctx context.Context, address string, login redis.Login) error {
	c := r.client()
	defer c.Close()
	return c.Shutdown(ctx, address, login)
}

// Queue implements topology.Servers: no fault of the tests in virtual time needs one.
func (*Redis) Queue(context.Context, string, string, redis.Login, [][]string) error {
	return redis.Error("ERR no queue in this world")
}

// Flood implements topology.Servers: these servers have no memory that ends.
func (*Redis) Flood(context.Context, string, string, redis.Login, int64, int64) (int64, error) {
	return 0, redis.Error("ERR no memory in this world")
}

// Queued implements topology.Servers.
func (*Redis) Queued(string) bool {
	return false
}

// HangUp implements topology.Servers.
func (*Redis) HangUp(string) {}

// Close is for a topology.Real in its place.
func (*Redis) Close() {}

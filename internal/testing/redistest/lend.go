package redistest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/await"
)

// fixture is what can be lent: a server or a set of them.
type fixture interface {
	Servers() []*Server
	// restore resets the fixture to its initial state, or returns why that is not possible.
	restore() error
}

// restoring is how long restore may take: a new fixture takes less.
const restoring = 10 * time.Second

// Run runs the tests of a package that uses Shared or a similar function, and then ends the fixtures that these have
// started:
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Run(m)) }
func Run(m *testing.M) int {
	lent.mu.Lock()
	lent.open = true
	lent.mu.Unlock()
	defer lent.close()
	return m.Run()
}

// lent are the fixtures of the package under test that outlive single tests.
var lent = library{free: map[string][]loan{}}

type library struct {
	mu      sync.Mutex
	open    bool
	keepers []*keeper
	free    map[string][]loan // by kind
}

// loan is a fixture and what owns it.
type loan struct {
	fixture fixture
	owner   *keeper
}

func (l *library) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.keepers {
		k.end()
	}
}

// keeper is the testing.TB of a fixture that outlives tests: an error fails the test that uses the fixture at that
// time, and cleanups run at the fixture's end.
type keeper struct {
	testing.TB
	cleanups []func()
	ended    bool
}

func (k *keeper) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		k.Fatal(err)
	}
	return dir // of a server, which removes it
}

// Shared lends an empty server without a password to a test, for itself alone: much cheaper than NewServer, which is
// for servers that are to be configured otherwise.
func Shared(t testing.TB) *Server {
	t.Helper()
	return lend(t, "a server", func(t testing.TB) *Server { return NewServer(t, Options{}) })
}

// SharedReplication lends an empty primary with the given number of replicas.
func SharedReplication(t testing.TB, replicas int) *Replication {
	t.Helper()
	return lend(t, fmt.Sprintf("a primary with %d replicas", replicas), func(t testing.TB) *Replication {
		return NewReplication(t, replicas, Options{})
	})
}

// SharedSentinel lends an empty primary with two replicas and three sentinels. Primary and Replicas have these roles
// when it is lent. The sentinels fail over only on request, not because a busy machine delayed the primary.
func SharedSentinel(t testing.TB) *Sentinel {
	t.Helper()
	return lend(t, "a set with sentinels", func(t testing.TB) *Sentinel {
		return NewSentinel(t, 2, SentinelOptions{DownAfter: time.Minute, FailoverTimeout: 10 * time.Second})
	})
}

// SharedCluster lends an empty cluster of three primaries with a replica each. The first of each shard is its primary
// when it is lent. It fails over only on request, as the sentinels of SharedSentinel do.
func SharedCluster(t testing.TB) *Cluster {
	t.Helper()
	return lend(t, "a cluster", func(t testing.TB) *Cluster {
		return NewCluster(t, 3, 1, ClusterOptions{NodeTimeout: 5 * time.Second})
	})
}

// lend gives a fixture to a test until the test ends: one that another test gave back as good as new, or a new one. No
// two tests have the same one at a time.
func lend[F fixture](t testing.TB, kind string, start func(t testing.TB) F) F {
	t.Helper()
	kind += " of " + ReleaseOf(t).String()
	l, found := lent.take(t, kind)
	if !found {
		l.owner = lent.keep(t)
		l.fixture = start(l.owner)
		for _, s := range l.fixture.Servers() {
			state, err := s.state(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.first = state
		}
	}
	t.Cleanup(func() { lent.giveBack(t, kind, l) })
	return l.fixture.(F)
}

func (l *library) take(t testing.TB, kind string) (loan, bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		t.Fatal("redistest: the package's TestMain has to call redistest.Run")
	}
	n := len(l.free[kind])
	if n == 0 {
		return loan{}, false
	}
	got := l.free[kind][n-1]
	l.free[kind] = l.free[kind][:n-1]
	got.owner.TB = t
	return got, true
}

func (l *library) keep(t testing.TB) *keeper {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &keeper{TB: t}
	l.keepers = append(l.keepers, k)
	return k
}

// giveBack keeps a fixture for the next test, or ends it: that of a failed test is not used again.
func (l *library) giveBack(t testing.TB, kind string, back loan) {
	if t.Failed() {
		for _, s := range back.fixture.Servers() {
			t.Logf("the last lines of %s at %s:\n%s", s.program, s.Address(), s.lastWords())
		}
		back.owner.end()
		return
	}
	if err := back.fixture.restore(); err != nil {
		t.Logf("%s is not lent again: %v", kind, err)
		back.owner.end()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free[kind] = append(l.free[kind], back)
}

func (k *keeper) Cleanup(f func()) {
	k.cleanups = append(k.cleanups, f)
}

// Helper does nothing: it is also called at the end, when no test runs.
func (k *keeper) Helper() {}

// Failed is false: giveBack writes the logs of a failed test.
func (k *keeper) Failed() bool {
	return false
}

func (k *keeper) end() {
	if k.ended {
		return
	}
	k.ended = true
	for i := range k.cleanups {
		k.cleanups[len(k.cleanups)-1-i]()
	}
}

func (s *Server) restore() error {
	if err := s.unchanged(); err != nil {
		return err
	}
	role := s.Info("role")
	if role != "master" || s.Info("connected_slaves") != "0" {
		return fmt.Errorf("%s is a %s or has replicas", s.Address(), role)
	}
	return s.empty()
}

func (r *Replication) restore() error {
	for _, s := range r.Servers() {
		if err := s.unchanged(); err != nil {
			return err
		}
	}
	if err := r.Primary.empty(); err != nil {
		return err
	}
	return await.Try(context.Background(), restoring, func() error { return r.healthy(r.Primary) })
}

func (s *Sentinel) restore() error {
	if len(s.Servers()) != 3 {
		return fmt.Errorf("there are %d servers", len(s.Servers()))
	}
	if n := len(s.running()); n != 3 {
		return fmt.Errorf("%d sentinels run", n)
	}
	err := await.Try(context.Background(), restoring, func() error { return s.settled(2) })
	if err != nil {
		return err
	}
	for _, one := range s.Servers() {
		one.reconnect() // the sentinels close the connections of what they demote
		if err := one.unchanged(); err != nil {
			return err
		}
	}
	now := s.CurrentPrimary()
	for i, replica := range s.Replicas {
		if replica == now {
			s.Primary, s.Replicas[i] = replica, s.Primary
		}
	}
	if err := s.Primary.empty(); err != nil {
		return err
	}
	return await.Try(context.Background(), restoring, func() error { return s.healthy(s.Primary) })
}

func (c *Cluster) restore() error {
	if len(c.Servers()) != 6 {
		return fmt.Errorf("there are %d nodes", len(c.Servers()))
	}
	for _, s := range c.Servers() {
		if err := s.unchanged(); err != nil {
			return err
		}
	}
	err := await.Try(context.Background(), restoring, c.healthy)
	if err != nil {
		return err
	}
	for i, shard := range c.Shards {
		if shard[0].Info("role") != "master" {
			shard[0], shard[1] = shard[1], shard[0]
		}
		for _, slot := range []int{i * slotCount / 3, (i+1)*slotCount/3 - 1} {
			if owner := c.Owner(slot); owner != shard[0] {
				return fmt.Errorf("slot %d belongs to %s", slot, owner.Address())
			}
		}
		if err := shard[0].empty(); err != nil {
			return err
		}
	}
	return await.Try(context.Background(), restoring, c.healthy)
}

// Servers is the server itself.
func (s *Server) Servers() []*Server {
	return []*Server{s}
}

// unchanged returns an error if a server differs from its initial state.
func (s *Server) unchanged() error {
	if !s.Running() {
		return fmt.Errorf("%s was killed", s.Address())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // a paused or stopped server does not respond
	defer cancel()
	state, err := s.state(ctx)
	if err == nil && state != s.first {
		err = fmt.Errorf("%s has other settings, users or another process than at first", s.Address())
	}
	return err
}

// state is what a test may change and what restore does not change back.
func (s *Server) state(ctx context.Context) (string, error) {
	settings, err := s.Client().ConfigGet(ctx, "*").Result()
	if err != nil {
		return "", err
	}
	delete(settings, "replicaof") // a failover changes it
	delete(settings, "slaveof")
	users, err := s.Client().Do(ctx, "acl", "list").Result()
	if err != nil {
		return "", err
	}
	info, err := s.info(ctx, "server")
	return fmt.Sprint(settings, users, info["run_id"]), err
}

// empty removes all data and what was counted.
func (s *Server) empty() error {
	ctx := context.Background()
	p := s.Client().Pipeline()
	p.Do(ctx, "client", "unpause")
	p.FlushAll(ctx)
	p.ScriptFlush(ctx)
	p.ConfigResetStat(ctx)
	p.Do(ctx, "slowlog", "reset")
	_, err := p.Exec(ctx)
	return err
}

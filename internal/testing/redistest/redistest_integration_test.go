//go:build integration

package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/await"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// each runs a test with plain servers and with TLS, client certificates, passwords and ACL users.
func each(t *testing.T, test func(t *testing.T, o Options)) {
	t.Parallel()
	for name, o := range map[string]Options{
		"plain":   {},
		"secured": {TLS: NewAuthority(t), Password: "admin", Users: []string{"app on >secret ~* &* +@all"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, o)
		})
	}
}

func TestServer(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		s := NewServer(t, o)
		s.Do("set", "k", "v")
		s.Kill()
		s.Restart()
		if got := s.Do("get", "k"); got != nil {
			t.Errorf("a server without persistence came back with %v", got)
		}
	})
}

func TestReplication(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		r := NewReplication(t, 2, o)
		r.FailoverTo(r.Primary, r.Replicas[1])
		r.WaitHealthy(r.Replicas[1])
		r.RemoveReplica(r.AddReplica(r.Replicas[1]))
	})
}

func TestSentinel(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		begin := time.Now()
		s := NewSentinel(t, 2, SentinelOptions{Options: o, SentinelPassword: "guard"})
		t.Logf("settled after %s", time.Since(begin))
		if s.FailoverAndWait() == s.Primary {
			t.Error("still the old primary")
		}
		t.Logf("another primary after %s", time.Since(begin))
	})
}

func TestCluster(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		begin := time.Now()
		c := NewCluster(t, 3, 1, ClusterOptions{Options: o})
		t.Logf("healthy after %s", time.Since(begin))
		c.Failover(c.Shards[0][1])
		c.WaitHealthy()
		slot := int(c.Shards[0][1].Do("cluster", "keyslot", "{tag}").(int64))
		from := c.Owner(slot)
		for i := range 300 {
			from.Do("set", fmt.Sprintf("{tag}%d", i), i)
		}
		to := c.Shards[1][0]
		if to == from {
			to = c.Shards[2][0]
		}
		c.MigrateSlot(slot, to)
		if got := to.Do("cluster", "countkeysinslot", slot); got != int64(300) {
			t.Errorf("%v of 300 keys moved with their slot", got)
		}
		c.WaitHealthy()
		if c.Owner(slot) != to {
			t.Errorf("slot %d has not moved", slot)
		}
		c.RemoveReplica(c.AddReplica(1, c.Shards[1][0]))
	})
}

// Only a fixture that a test returns in its initial state is lent again.
func TestLending(t *testing.T) {
	borrow := func(name string, use func(s *Server)) (port int) {
		t.Run(name, func(t *testing.T) {
			s := Shared(t)
			if n := s.Do("dbsize"); n != int64(0) {
				t.Errorf("lent with %v keys", n)
			}
			port = s.Port
			use(s)
		})
		return port
	}
	first := borrow("fills it", func(s *Server) {
		s.Do("set", "k", "v")
		s.Do("client", "pause", 60_000, "write")
	})
	for _, next := range []struct {
		name string
		use  func(s *Server)
	}{
		{"changes a setting", func(s *Server) { s.Do("config", "set", "maxmemory", "10mb") }},
		{"adds a user", func(s *Server) { s.Do("acl", "setuser", "app", "on") }},
		{"restarts it", func(s *Server) { s.Restart() }},
		{"pauses it", func(s *Server) { s.Do("client", "pause", 60_000, "all") }},
		{"kills it", func(s *Server) { s.Kill() }},
	} {
		if again := borrow(next.name, next.use); again != first {
			t.Errorf("before it %s: another server, though nothing had changed", next.name)
		}
		first = borrow("after it", func(*Server) {})
	}
	t.Run("one each", func(t *testing.T) {
		if one, other := Shared(t), Shared(t); one.Port == other.Port {
			t.Error("one server was lent twice")
		}
	})
}

// Sets are lent again after a failover, with their roles as they are.
func TestLendingSets(t *testing.T) {
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		var before *Sentinel
		t.Run("fails over", func(t *testing.T) {
			before = SharedSentinel(t)
			before.FailoverAndWait()
		})
		t.Run("again", func(t *testing.T) {
			if s := SharedSentinel(t); s != before || s.CurrentPrimary() != s.Primary {
				t.Errorf("lent again: %v", s == before)
			}
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		var before *Cluster
		t.Run("fails over", func(t *testing.T) {
			before = SharedCluster(t)
			before.Failover(before.Shards[1][1])
		})
		t.Run("again", func(t *testing.T) {
			c := SharedCluster(t)
			if c != before || c.Owner(slotCount/2) != c.Shards[1][0] {
				t.Errorf("lent again: %v", c == before)
			}
			c.MigrateSlot(0, c.Shards[2][0])
		})
		t.Run("after a slot moved", func(t *testing.T) {
			if SharedCluster(t) == before {
				t.Error("lent with a slot that has moved")
			}
		})
	})
}

func TestLoadSlowly(t *testing.T) {
	t.Parallel()
	s := Start(t)
	s.LoadSlowly(1000, time.Minute)
	s.Launch()
	await.Until(t, "it loads", func() error {
		err := s.Client().Ping(context.Background()).Err()
		if err != nil && strings.HasPrefix(err.Error(), "LOADING") {
			return nil
		}
		return fmt.Errorf("PING: %w", err)
	})
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	if c, err := net.DialTimeout("tcp", BlackHole(t), 200*time.Millisecond); err == nil {
		_ = c.Close()
		t.Error("it accepts connections")
	}
}

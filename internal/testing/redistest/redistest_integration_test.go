//go:build integration

package redistest

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestFixtures(t *testing.T) {
	secured := Options{TLS: NewAuthority(t), Password: "admin", Users: []string{"app on >secret ~* &* +@all"}}
	for name, o := range map[string]Options{"plain": {}, "secured": secured} {
		t.Run(name, func(t *testing.T) {
			t.Run("server", func(t *testing.T) {
				s := NewServer(t, o)
				s.Do("set", "k", "v")
				s.Kill()
				s.Restart()
				if got := s.Do("get", "k"); got != nil {
					t.Errorf("a server without persistence came back with %v", got)
				}
			})
			t.Run("replication", func(t *testing.T) {
				r := NewReplication(t, 2, o)
				r.FailoverTo(r.Primary, r.Replicas[1])
				r.WaitHealthy(r.Replicas[1])
				r.RemoveReplica(r.AddReplica(r.Replicas[1]))
			})
			t.Run("sentinel", func(t *testing.T) {
				begin := time.Now()
				s := NewSentinel(t, 2, SentinelOptions{Options: o, SentinelPassword: "guard"})
				t.Logf("settled after %s", time.Since(begin))
				s.Failover()
				Wait(t, "another primary", func() error {
					if s.CurrentPrimary() == s.Primary {
						return errors.New("still the old one")
					}
					return nil
				})
			})
			t.Run("cluster", func(t *testing.T) {
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
		})
	}
}

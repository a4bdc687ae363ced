//go:build integration

package guard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// hosting is the target of the pods of a stage.
func hosting(s *faulttest.Stage) target.Redis {
	return faulttest.On(s.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis
}

// allowedAtLast waits until a fault is allowed.
func allowedAtLast(t *testing.T, redis target.Redis, spec *v1alpha1.RedisFaultSpec) {
	t.Helper()
	await.Until(t, "the fault is allowed", func() error {
		_, err := Choose(t.Context(), redis, spec, contract.Traits{Silences: true})
		return err
	})
}

// A replica in its full sync is no copy: the primary alone has the data until it is complete.
func TestFullSyncIsNoCopy(t *testing.T) { redistest.Each(t, testFullSyncIsNoCopy) }

func testFullSyncIsNoCopy(t *testing.T) {
	t.Parallel()
	primary := redistest.NewServer(t, redistest.Options{
		Config: []string{"repl-diskless-sync yes", "repl-diskless-sync-delay 3600"},
	})
	replica := redistest.NewServer(t, redistest.Options{})
	s := faulttest.NewStage(t, nil, Choose)
	s.Host("redis-0", primary, nil)
	s.Host("redis-1", replica, nil)
	replica.Do("replicaof", "127.0.0.1", primary.Port)
	await.Until(t, "the replica connects", func() error {
		if n := primary.Info("connected_slaves"); n != "1" {
			return fmt.Errorf("%s replicas", n)
		}
		return nil
	})
	_, err := Choose(t.Context(), hosting(s), killing(), contract.Traits{Silences: true})
	refusedFor(t, err, "the data (redis-0): redis-1 ")
	primary.Do("config", "set", "repl-diskless-sync-delay", "0")
	allowedAtLast(t, hosting(s), killing())
	replica.Kill()
	_, err = Choose(t.Context(), hosting(s), killing(), contract.Traits{Silences: true})
	refusedFor(t, err, "redis-1 does not answer")
}

// Nodes that announce an address other than that of their pods, as behind NodePorts, are found by their IDs.
func TestAnnouncedCluster(t *testing.T) { redistest.Each(t, testAnnouncedCluster) }

func testAnnouncedCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{
		Options: redistest.Options{Config: []string{"bind 127.0.0.1 127.0.0.2"}},
	})
	s := faulttest.NewStage(t, nil, Choose)
	for i, shard := range c.Shards {
		for k, server := range shard {
			s.Host(fmt.Sprintf("redis-%d", 2*i+k), server, nil)
		}
	}
	for _, server := range c.Servers() {
		server.Do("config", "set", "cluster-announce-ip", "127.0.0.2")
	}
	for _, server := range c.Servers() {
		await.Until(t, "all nodes announce the other address", func() error {
			if text := fmt.Sprint(server.Do("cluster", "nodes")); strings.Count(text, " 127.0.0.2:") < 6 {
				return errors.New(text)
			}
			return nil
		})
	}
	allowedAtLast(t, hosting(s), &v1alpha1.RedisFaultSpec{
		Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Mode: v1alpha1.SelectAll},
		Allow:  []v1alpha1.Allowance{v1alpha1.AllowMajorityOfPrimaries},
	})
	for shard := range int32(3) {
		found, err := Choose(t.Context(), hosting(s),
			&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: &shard, Mode: v1alpha1.SelectAll}}, contract.Traits{})
		if want := fmt.Sprintf("redis-%d redis-%d", 2*shard, 2*shard+1); err != nil || podsOf(found) != want {
			t.Errorf("shard %d: %s, %v; want %s", shard, podsOf(found), err, want)
		}
	}
	_, err := Choose(t.Context(), hosting(s),
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(2))}},
		contract.Traits{Silences: true})
	refusedFor(t, err, "shard 0 (redis-0, redis-1)")
}

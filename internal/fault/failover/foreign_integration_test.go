//go:build integration

package failover

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// bystander is a server of another namespace: it listens at an address that no pod of this one has. untouched holds that
// nobody sent it a command, but a server that takes it for its primary, and asks for its data.
func bystander(t *testing.T) (server *redistest.Server, host, port string, untouched func()) {
	t.Helper()
	server = redistest.NewServer(t, redistest.Options{Config: []string{"bind 127.0.0.1 127.0.0.2"}})
	calls := func() map[string]int64 {
		text := server.Do("INFO", "commandstats").(string)
		calls := map[string]int64{}
		for name, line := range redis.ParseInfo(text) {
			n, _, _ := strings.Cut(strings.TrimPrefix(line, "calls="), ",")
			calls[strings.TrimPrefix(name, "cmdstat_")], _ = strconv.ParseInt(n, 10, 64)
		}
		for _, ofReplicas := range []string{"ping", "replconf", "psync", "sync"} {
			delete(calls, ofReplicas)
		}
		return calls
	}
	before, connections := calls(), server.Info("total_connections_received")
	before["info"] += 2 // these
	return server, "127.0.0.2", strconv.Itoa(server.Port), func() {
		t.Helper()
		if now := calls(); !maps.Equal(now, before) {
			t.Errorf("the victim got commands: %v, want %v", now, before)
		}
		stats := fmt.Sprint(server.Do("INFO", "commandstats"))
		if now := server.Info("total_connections_received"); now != connections && !strings.Contains(stats, "sync:") {
			t.Errorf("the victim got %s connections, and had %s before: %s", now, connections, stats)
		}
		if role := server.Info("role"); role != "master" {
			t.Errorf("the victim is a %s", role)
		}
	}
}

// Real servers announce the address of a server of another namespace: as a replica, as a node of a cluster, and as a
// sentinel of the spec.
func TestFailoverOfServersThatAnnounceAVictim(t *testing.T) {
	redistest.Each(t, testFailoverOfServersThatAnnounceAVictim)
}

func testFailoverOfServersThatAnnounceAVictim(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, s *failoverStage, method v1alpha1.FailoverMethod, primary *redistest.Server,
		says string,
	) {
		t.Helper()
		injector := s.injector(failingOver(method, ""))
		pod := s.PodNamed(s.pods[primary.Address()])
		target := &v1alpha1.FaultTarget{
			Pod:     pod.Name,
			UID:     string(pod.UID),
			Address: primary.Address(),
			RunID:   primary.Info("run_id"),
			Role:    v1alpha1.RolePrimary,
		}
		p := faulttest.ProblemOf(t, injector.Preflight(t.Context(), target))
		if p.Reason != v1alpha1.ReasonForeignAddress || !strings.Contains(p.Message, says) {
			t.Errorf("%+v, want %q", p, says)
		}
		if target.Revert != nil {
			t.Errorf("recorded %s", target.Revert.Data)
		}
	}
	t.Run("replica-announce-ip", func(t *testing.T) {
		_, host, port, untouched := bystander(t)
		fixture := redistest.NewReplication(t, 2, redistest.Options{})
		s := newFailoverStage(t, fixture.Servers())
		fixture.Replicas[1].Do("config", "set", "replica-announce-ip", host, "replica-announce-port", port)
		fixture.Primary.Do("client", "kill", "type", "replica") // they announce themselves when they connect
		await.Until(t, "the primary lists the victim", func() error {
			if list := fmt.Sprint(fixture.Primary.Do("info", "replication")); strings.Count(list, "state=online") < 2 ||
				!strings.Contains(list, "ip="+host) {
				return fmt.Errorf("%s", list)
			}
			return nil
		})
		refused(t, s, v1alpha1.FailoverReplication, fixture.Primary,
			"redis-0 names "+host+":"+port+" as its replica, which is no pod of namespace shop")
		untouched()
	})
	t.Run("cluster-announce-ip", func(t *testing.T) {
		_, host, port, untouched := bystander(t)
		fixture := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
		s := newFailoverStage(t, fixture.Servers())
		primary := fixture.Shards[0][0]
		primary.Do("config", "set", "cluster-announce-ip", host)
		primary.Do("config", "set", "cluster-announce-port", port)
		await.Until(t, "the primary names the victim", func() error {
			if nodes := fmt.Sprint(primary.Do("cluster", "nodes")); !strings.Contains(nodes, host+":"+port) {
				return fmt.Errorf("%s", nodes)
			}
			return nil
		})
		refused(t, s, v1alpha1.FailoverCluster, primary,
			"names "+host+":"+port+" as the primary of its shard, which is no pod of namespace shop")
		untouched()
	})
	t.Run("a sentinel of the spec", func(t *testing.T) {
		_, host, port, untouched := bystander(t)
		fixture := redistest.NewReplication(t, 1, redistest.Options{})
		s := newFailoverStage(t, fixture.Servers(), host+":"+port)
		refused(t, s, v1alpha1.FailoverSentinel, fixture.Primary,
			"spec.target.sentinel names "+host+":"+port+" as a sentinel, which is no pod of namespace shop")
		untouched()
	})
}

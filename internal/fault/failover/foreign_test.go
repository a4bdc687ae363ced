package failover

import (
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// The hostile primary redis-0 and the sentinel 10.0.0.9 of this namespace name servers of others.
const victim = "10.9.8.7:6379"

// hostileWorld answers commands by their words.
type hostileWorld struct{ *faulttest.World }

func newHostileWorld(t *testing.T, mode string, answers map[string]any) *hostileWorld {
	t.Helper()
	w := &hostileWorld{World: faulttest.NewWorld(t)}
	for name, ip := range map[string]string{"redis-0": "10.0.0.1", "redis-1": "10.0.0.2"} {
		pod := w.Pod(name, "uid-"+name, ip, topology.Primary, nil)
		w.Servers.Change(faulttest.AddressOf(pod), func(s *memredis.State) { s.Mode = mode })
	}
	w.Bystander("sentinel-0", "10.0.0.9")
	w.Servers.Start(victim, memredis.State{RunID: "run-uid-redis-0", Mode: mode})
	for _, sentinel := range []string{"10.0.0.9:26379", "10.9.8.7:26379"} {
		w.Servers.Start(sentinel, memredis.State{Mode: "sentinel"})
	}
	for words, answer := range answers {
		w.Servers.Script(words, faulttest.Reply(answer))
	}
	return w
}

func (w *hostileWorld) injector(method v1alpha1.FailoverMethod, sentinels ...string) contract.Injector {
	w.T.Helper()
	deps := w.Deps()
	deps.Sentinels = sentinel.Set{Addresses: sentinels, Servers: deps.Servers}
	injector, err := Kinds.For(
		&v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{Type: v1alpha1.FaultFailover, Failover: &v1alpha1.Failover{Method: method}},
		}, deps)
	if err != nil {
		w.T.Fatal(err)
	}
	return injector
}

func aimed() *v1alpha1.FaultTarget {
	return &v1alpha1.FaultTarget{
		Pod:     "redis-0",
		UID:     "uid-redis-0",
		Address: "10.0.0.1:6379",
		RunID:   "run-uid-redis-0",
		Role:    v1alpha1.RolePrimary,
	}
}

// Every method follows addresses that Redis or the sentinels name. Nothing is sent to one of another namespace, and the
// refusal says who named it.
func TestFailoverObeysNoForeignAddress(t *testing.T) {
	watched := func(primary ...any) map[string]any {
		return map[string]any{
			"SENTINEL MYID":        "id-1",
			"SENTINEL MASTERS":     []any{[]any{"name", "m"}},
			"SENTINEL SENTINELS m": []any{[]any{"runid", "id-2", "ip", "10.9.8.7", "port", "26379"}},
			"SENTINEL MASTER m": []any{
				"name", "m", "flags", "master", "config-epoch", "3",
				"down-after-milliseconds", "30000",
			},
			"SENTINEL GET-MASTER-ADDR-BY-NAME m": primary,
			"INFO replication":                   "role:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=5,lag=0\r\n",
		}
	}
	nodes := func(primary, replica string) map[string]any {
		return map[string]any{
			"CLUSTER MYID":     "a",
			"INFO replication": "role:master\r\nslave0:ip=" + replica + ",port=6379,state=online,offset=5,lag=0\r\n",
			"CLUSTER NODES": "a " + primary + ":6379@16379 myself,master - 0 0 1 connected 0-16383\nb " + replica +
				":6379@16379 slave a 0 0 1 connected\n",
		}
	}
	for name, tc := range map[string]struct {
		method    v1alpha1.FailoverMethod
		mode      string
		answers   map[string]any
		sentinels []string
		says      string
	}{
		"FAILOVER to a replica": {
			method: v1alpha1.FailoverReplication,
			says:   "redis-0 names 10.9.8.7:6379 as its replica, which is no pod of namespace shop",
			answers: map[string]any{
				"INFO replication": "role:master\r\nmaster_failover_state:no-failover\r\nslave0:ip=10.9.8.7,port=6379,state=online,offset=9,lag=0\r\n",
			},
		},
		"REPLICAOF at another replica": {
			method: v1alpha1.FailoverReplication,
			says:   "redis-0 names victim.other.svc:6379 as its replica, which is no pod of namespace shop",
			answers: map[string]any{
				"INFO replication": "role:master\r\nmaster_failover_state:no-failover\r\n" +
					"slave0:ip=10.0.0.2,port=6379,state=online,offset=9,lag=0\r\nslave1:ip=victim.other.svc,port=6379,state=online,offset=5,lag=0\r\n",
			},
		},
		"CLUSTER FAILOVER at a replica": {
			method:  v1alpha1.FailoverCluster,
			mode:    "cluster",
			answers: nodes("10.0.0.1", "10.9.8.7"),
			says:    "redis-0 names 10.9.8.7:6379 as its replica",
		},
		"the primary of a shard": {
			method:  v1alpha1.FailoverCluster,
			mode:    "cluster",
			answers: nodes("169.254.169.254", "10.0.0.2"),
			says:    "redis-0 names 169.254.169.254:6379 as the primary of its shard",
		},
		"the primary of the sentinels": {
			method:    v1alpha1.FailoverSentinel,
			answers:   watched("10.9.8.7", "6379"),
			sentinels: []string{"10.0.0.9:26379"},
			says:      "no majority of the 2 sentinels",
		},
		"the primary of the only sentinel": {
			method:    v1alpha1.FailoverSentinel,
			answers:   alone(watched("10.9.8.7", "6379")),
			sentinels: []string{"10.0.0.9:26379"},
			says:      "the majority of the sentinels names 10.9.8.7:6379 as the primary",
		},
		"a sentinel of the spec": {
			method:    v1alpha1.FailoverSentinel,
			answers:   watched("10.0.0.1", "6379"),
			sentinels: []string{"10.9.8.7:26379"},
			says:      "spec.target.sentinel names 10.9.8.7:26379 as a sentinel",
		},
		"a sentinel of the spec, on the host": {
			method:    v1alpha1.FailoverSentinel,
			answers:   watched("10.0.0.1", "6379"),
			sentinels: []string{"localhost:26379"},
			says:      "spec.target.sentinel names localhost:26379 as a sentinel",
		},
		"a sentinel of another namespace's set": {
			method:    v1alpha1.FailoverSentinel,
			answers:   watched("10.0.0.1", "6379"),
			sentinels: []string{"redis-0.redis.other.svc:26379"},
			says:      "as a sentinel, which is no pod of namespace shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHostileWorld(t, tc.mode, tc.answers)
			err := w.injector(tc.method, tc.sentinels...).Preflight(t.Context(), aimed())
			if p := faulttest.ProblemOf(t, err); !strings.Contains(p.Message, tc.says) || p.Lasting {
				t.Errorf("%+v, want %q", p, tc.says)
			} else if strings.Contains(p.Message, "names") && p.Reason != v1alpha1.ReasonForeignAddress {
				t.Errorf("reason %s", p.Reason)
			}
			if len(w.Servers.Strangers()) > 0 {
				t.Errorf("a victim was reached: %q", w.Servers.Strangers())
			}
		})
	}
}

// A node that is gone stays in CLUSTER NODES by an address that may be another's by now. It gets no command, and
// another replica is promoted.
func TestClusterFailoverBesideAForeignNode(t *testing.T) {
	w := newHostileWorld(t, "cluster", map[string]any{
		"CLUSTER MYID": "a", "INFO replication": "role:slave\r\nmaster_link_status:up\r\nslave_repl_offset:5\r\n",
		"CLUSTER NODES": "a 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-16383\nb 10.9.8.7:6379@16379 slave,fail " +
			"a 0 0 1 connected\nc 10.0.0.2:6379@16379 slave a 0 0 1 connected\n",
	})
	target := aimed()
	if err := w.injector(v1alpha1.FailoverCluster).Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if record := faulttest.Recorded[failoverRecord](t, target).Cluster; record.Replica != "10.0.0.2:6379" ||
		len(record.Others) > 0 {
		t.Errorf("record %+v", record)
	}
	if len(w.Servers.Strangers()) > 0 {
		t.Errorf("a victim was reached: %q", w.Servers.Strangers())
	}
}

func alone(answers map[string]any) map[string]any {
	answers["SENTINEL SENTINELS m"] = []any{}
	return answers
}

// Redis turns hostile after the record was stored, or a record was written by an older operator.
func TestRecordsOfForeignAddresses(t *testing.T) {
	answers := map[string]any{
		"INFO replication": "role:slave\r\nmaster_host:10.9.8.7\r\nmaster_port:6379\r\nmaster_failover_state:no-failover\r\n",
		"CLUSTER NODES":    "v 10.9.8.7:6379@16379 master - 0 0 9 connected 0-16383\n",
		"SENTINEL MYID":    "id-1", "SENTINEL SENTINELS m": []any{},
		"SENTINEL MASTER m": []any{
			"name", "m", "flags", "master", "config-epoch", "9",
			"down-after-milliseconds", "30000",
		},
		"SENTINEL GET-MASTER-ADDR-BY-NAME m": []any{"10.9.8.7", "6379"},
	}
	for name, record := range map[string]failoverRecord{
		"Replication": {
			Method:  v1alpha1.FailoverReplication,
			Primary: "10.0.0.1:6379",
			Replication: &replicationRecord{
				Replica: victim,
				Follows: map[string]string{"victim.other.svc:6379": "10.0.0.1:6379", victim: "10.9.8.7:6379"},
			},
		},
		"promoted": {
			Method:      v1alpha1.FailoverReplication,
			Primary:     victim,
			Replication: &replicationRecord{Replica: "10.0.0.2:6379", Follows: map[string]string{victim: "10.9.8.7:6379"}},
		},
		"Cluster": {
			Method:  v1alpha1.FailoverCluster,
			Primary: victim,
			Cluster: &clusterRecord{Node: "a", Epoch: 1, Replica: victim, Others: []string{victim}},
		},
		"Sentinel": {
			Method:   v1alpha1.FailoverSentinel,
			Primary:  victim,
			Sentinel: &sentinelRecord{MasterName: "m", Epoch: 3, Sentinel: "10.9.8.7:26379", Pause: 1},
		},
		"demoted": {
			Method:   v1alpha1.FailoverSentinel,
			Primary:  "10.0.0.1:6379",
			Sentinel: &sentinelRecord{MasterName: "m", Epoch: 3, Sentinel: "10.0.0.9:26379", Pause: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHostileWorld(t, "", answers)
			injector, aim := w.injector(record.Method, "10.0.0.9:26379"), aimed()
			faulttest.Save(t, aim, record)
			_, _ = injector.Begun(t.Context(), aim)
			_, _ = injector.Inject(t.Context(), aim)
			_, _ = injector.Effect(t.Context(), aim)
			injector.(contract.Follower).Follow(t.Context(), aim)
			_, _ = injector.Revert(t.Context(), aim)
			own := slices.DeleteFunc(w.Servers.Sent(), func(command string) bool {
				return !strings.HasPrefix(command, "REPLICAOF") && !strings.HasPrefix(command, "FAILOVER")
			})
			if reached := w.Servers.Strangers(); len(reached) > 0 || len(own) > 0 {
				t.Errorf("a victim was reached: %q, and is named to its own servers: %q", reached, own)
			}
		})
	}
}

//go:build integration

package memredis_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Run(m)) }

// asked are commands to which both kinds of servers reply the same, apart from numbers and their own names.
var asked = []string{
	"PING", "TIME", "ROLE", "DBSIZE", "GET a", "SET a 1", "GET a", "SET a 1 NX", "INCR a", "EXPIRE a", "EXPIRE a 100",
	"PTTL b",
	"MSET a", "NOSUCH a b", "AUTH x", "HELLO 9",
	"CONFIG GET maxmemory-policy", "CONFIG GET hz appendonly", "CONFIG GET nosuch", "CONFIG SET nosuch 1",
	"CONFIG SET hz x", "CONFIG SET hz 20", "CONFIG GET hz", "CONFIG SET maxmemory 1gb", "CONFIG GET maxmemory",
	"CONFIG SET maxmemory 0", "CONFIG SET hz 10", "CONFIG GET min-replicas-to-*", "CONFIG NOSUCH", "CONFIG SET",
	"CLIENT ID", "CLIENT NOSUCH", "CLIENT PAUSE x", "CLIENT PAUSE 1 WRITE", "CLIENT UNPAUSE",
	"CLIENT KILL TYPE normal SKIPME yes", "CLIENT KILL TYPE pubsub",
	"ACL WHOAMI", "ACL DRYRUN default PING", "ACL DRYRUN default NOSUCH", "ACL DRYRUN nobody PING",
	"COMMAND INFO nosuch", "COMMAND GETKEYS get a", "COMMAND GETKEYS MSET a 1 b 2", "COMMAND GETKEYS DEL a b",
	"COMMAND GETKEYS PUBLISH c m", "COMMAND GETKEYS NOSUCH a", "COMMAND GETKEYS SET a", "COMMAND GETKEYS GETRANGE a 1 2",
	"BITFIELD bytes OVERFLOW SAT INCRBY u8 #9 1",
	"BITFIELD bytes OVERFLOW SAT INCRBY u8 #9 1", "GETRANGE bytes 0 20", "BITFIELD bytes OVERFLOW SAT INCRBY u8 #19 0",
	"GETRANGE bytes 0 30", "BITFIELD bytes OVERFLOW SAT INCRBY u8 #9 254", "GETRANGE bytes 8 10", "BITFIELD bytes SET u8",
	"CLUSTER NODES", "SENTINEL MASTERS", "FAILOVER", "FAILOVER ABORT", "EVAL",
	"DEBUG SLEEP 0", "DEBUG", "SLOWLOG LEN", "SLOWLOG RESET", "PUBLISH c m", "BGSAVE", "REPLICAOF NO ONE",
	"CONFIG RESETSTAT",
}

// shape is a reply without what differs from one server to another.
func shape(reply any) string {
	switch v := reply.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = shape(v[i])
		}
		slices.Sort(parts) // CONFIG GET is in the order of a hash table
		return "[" + strings.Join(parts, " ") + "]"
	case int64:
		return "number"
	case string:
		if strings.Trim(v, "0123456789") == "" && len(v) >= 6 {
			return "digits"
		}
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%T %v", reply, reply)
}

// What memredis replies is what a real Redis 7 replies, to the commands that it has.
func TestRepliesAreThoseOfRealServers(t *testing.T) {
	t.Parallel()
	real := redistest.NewServer(t, redistest.Options{Config: []string{"enable-debug-command yes", "save \"\""}})
	network := memnet.New()
	memory := memredis.Start(t, network, real.Address(), memredis.Options{})
	ofReal, ofMemory := redis.NewClient(nil), redis.NewClient(network.Dial)
	t.Cleanup(ofReal.Close)
	t.Cleanup(ofMemory.Close)
	for _, words := range asked {
		var command []any
		for word := range strings.FieldsSeq(words) {
			command = append(command, word)
		}
		want, err := ofReal.Do(t.Context(), real.Address(), redis.Login{}, command...)
		if err != nil && !redis.IsReply(err) {
			t.Fatal(err)
		}
		got, err2 := ofMemory.Do(t.Context(), memory.Address(), redis.Login{}, command...)
		if words == "TIME" { // its microseconds have any number of digits
			got, want = len(got.([]any)), len(want.([]any))
		}
		if shape(got) != shape(want) || fmt.Sprint(err2) != fmt.Sprint(err) {
			t.Errorf("%s: %s, %v; a real server: %s, %v", words, shape(got), err2, shape(want), err)
		}
	}
}

// Every field that memredis shows in INFO, in each of its roles, is one that a real server shows in that role, in the
// same section.
func TestInfoIsThatOfRealServers(t *testing.T) {
	t.Parallel()
	real := redistest.NewReplication(t, 1, redistest.Options{})
	network := memnet.New()
	group := memredis.NewGroup(network)
	t.Cleanup(group.Kill)
	group.Add("127.0.0.1:1", memredis.Options{}).Restart()
	group.Add("127.0.0.1:2", memredis.Options{State: memredis.State{Primary: "127.0.0.1:1"}}).Restart()
	ofReal, ofMemory := redis.NewClient(nil), redis.NewClient(network.Dial)
	t.Cleanup(ofReal.Close)
	t.Cleanup(ofMemory.Close)
	sections := []string{
		"server", "clients", "memory", "persistence", "stats", "replication", "cpu", "commandstats", "cluster", "keyspace",
	}
	for at, address := range map[string]string{
		"127.0.0.1:1": real.Primary.Address(), "127.0.0.1:2": real.Replicas[0].Address(),
	} {
		for _, section := range sections {
			fields := func(c *redis.Client, address string) (redis.Info, []string) {
				if _, err := c.Do(t.Context(), address, redis.Login{}, "PING"); err != nil {
					t.Fatal(err)
				}
				reply, err := c.Do(t.Context(), address, redis.Login{}, "INFO", section)
				if err != nil {
					t.Fatal(err)
				}
				info := redis.ParseInfo(fmt.Sprint(reply))
				var names []string
				for name := range info {
					names = append(names, name)
				}
				slices.Sort(names)
				return info, names
			}
			want, _ := fields(ofReal, address)
			got, names := fields(ofMemory, at)
			for _, name := range names {
				there, known := want[name]
				if !known && !strings.HasPrefix(name, "cmdstat_") {
					t.Errorf("%s, INFO %s: no real server of this release shows %s", got["role"], section, name)
				}
				if word := strings.Trim(there, "0123456789.-"); known && word == there && there != "" && got[name] != there &&
					!slices.Contains([]string{"redis_version", "run_id", "master_host", "config_file"}, name) &&
					!strings.Contains(there, "=") {
					t.Errorf("%s, INFO %s: %s is %s, of a real server %s", got["role"], section, name, got[name], there)
				}
			}
		}
		for _, words := range []string{"ROLE"} {
			want, _ := ofReal.Do(t.Context(), address, redis.Login{}, words)
			got, _ := ofMemory.Do(t.Context(), at, redis.Login{}, words)
			if kind := func(reply any) string {
				return fmt.Sprintf("%T %T", reply, reply.([]any)[1])
			}; kind(got) != kind(want) ||
				len(got.([]any)) != len(want.([]any)) {
				t.Errorf("%s: %v, of a real server %v", words, got, want)
			}
		}
	}
}

// A node that has met no other says so as a real one does.
func TestClusterIsThatOfRealServers(t *testing.T) {
	t.Parallel()
	real := redistest.StartNode(t)
	network := memnet.New()
	memory := memredis.Start(t, network, real.Address(), memredis.Options{State: memredis.State{Mode: "cluster"}})
	ofReal, ofMemory := redis.NewClient(nil), redis.NewClient(network.Dial)
	t.Cleanup(ofReal.Close)
	t.Cleanup(ofMemory.Close)
	ask := func(c *redis.Client, words ...any) string {
		reply, err := c.Do(t.Context(), memory.Address(), redis.Login{}, words...)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(reply)
	}
	if got, want := len(ask(ofMemory, "CLUSTER", "MYID")), len(ask(ofReal, "CLUSTER", "MYID")); got != want {
		t.Errorf("an ID has %d characters, of a real node %d", got, want)
	}
	got, want := strings.Fields(ask(ofMemory, "CLUSTER", "NODES")), strings.Fields(ask(ofReal, "CLUSTER", "NODES"))
	if len(got) != len(want) || !slices.Equal(got[2:4], want[2:4]) || got[7] != want[7] {
		t.Errorf("CLUSTER NODES is %v, of a real node %v", got, want)
	}
	there := redis.ParseInfo(ask(ofReal, "CLUSTER", "INFO"))
	for name, value := range redis.ParseInfo(ask(ofMemory, "CLUSTER", "INFO")) {
		if shown, known := there[name]; !known || shown != value {
			t.Errorf("CLUSTER INFO: %s is %s, of a real node %q", name, value, shown)
		}
	}
}

package observer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

func list(items ...resp.Value) resp.Value   { return resp.Value{Type: '*', Items: items} }
func bulk(text string) resp.Value           { return resp.Value{Type: '$', Text: text} }
func integerReply(number string) resp.Value { return resp.Value{Type: ':', Text: number} }

func TestServerOfForTheBottleneck(t *testing.T) {
	got := serverFromInfo(redis.ParseInfo(
		"# Clients\r\nmaxclients:100\r\nblocked_clients:2\r\n# Stats\r\ninstantaneous_ops_per_sec:9\r\ntotal_reads_processed:10\r\n" +
			"total_writes_processed:20\r\ntotal_net_input_bytes:7\r\ntotal_net_output_bytes:8\r\n" +
			"io_threaded_reads_processed:5\r\nio_threaded_writes_processed:6\r\nlatest_fork_usec:321\r\n" +
			"evicted_clients:3\r\nclient_output_buffer_limit_disconnections:4\r\n" +
			"client_query_buffer_limit_disconnections:5\r\nsync_full:6\r\nsync_partial_ok:2\r\n" +
			"# Persistence\r\naof_current_size:1000\r\n" +
			"# Replication\r\nconnected_slaves:3\r\nslave0:ip=::1,port=7,state=online,offset=1,lag=0\r\n" +
			"slave1:ip=::1,port=8,state=send_bulk,offset=0,lag=0\r\n" +
			"# Errorstats\r\nerrorstat_ERR:count=1\r\nerrorstat_OOM:count=77\r\nerrorstat_MISCONF:count=9\r\n"))
	want := record.Server{
		Name: "redis", MaxClients: 100, BlockedClients: 2, InstantaneousOps: 9, TotalReads: 10,
		TotalWrites: 20,
		NetInput:    7, NetOutput: 8, IOThreadedReads: 5, IOThreadedWrites: 6, LatestForkMicros: 321, OOMErrors: 77,
		EvictedClients: 3, BufferedClients: 4, QueryingClients: 5, FullSyncs: 6, PartialSyncs: 2, AOFSize: 1000, Replicas: 3,
		SyncedReplicas: 1, MisconfErrors: 9,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for status, want := range map[string]int64{"": 0, "up": record.LinkUp, "down": record.LinkDown} {
		if got := serverFromInfo(redis.ParseInfo("role:slave\r\nmaster_link_status:" + status +
			"\r\n")).PrimaryLink; got != want {
			t.Errorf("link %q is %d, want %d", status, got, want)
		}
	}
	if n := serverFromInfo(redis.ParseInfo("connected_slaves:9000000000000\r\n")).SyncedReplicas; n != 0 {
		t.Errorf("%d replicas of a hostile server", n)
	}
}

func TestSlowest(t *testing.T) {
	entry := func(id, micros string, words ...resp.Value) resp.Value {
		return list(integerReply(id), integerReply("1700000000"), integerReply(micros), list(words...), bulk("1.2.3.4:5"),
			bulk(""))
	}
	reply := list(entry("8", "12000", bulk("keys"), bulk("*")), entry("7", "90000", bulk("sort")),
		entry("6", "900000", bulk("old")), list(), entry("9", "3", bulk("x")))
	for _, c := range []struct {
		name  string
		reply resp.Value
		next  int64
		want  record.SlowLog
	}{
		{"one entry for each command", reply, 7, record.SlowLog{Total: 10, Commands: []record.SlowCommand{
			{Command: "SORT", Count: 1, WorstMicros: 90000, At: 5},
			{Command: "KEYS", Count: 1, WorstMicros: 12000, At: 5},
			{Command: "X", Count: 1, WorstMicros: 3, At: 5},
		}}},
		{"nothing is reported again", reply, 10, record.SlowLog{Total: 10}},
		{"no answer", resp.Value{}, 3, record.SlowLog{Total: 3}},
		{
			"several of a command",
			list(entry("9", "20", bulk("GET")), entry("8", "40", bulk("get"), bulk("k")), entry("7", "30", bulk("GET"))),
			8,
			record.SlowLog{Total: 10, Commands: []record.SlowCommand{{Command: "GET", Count: 2, WorstMicros: 40, At: 5}}},
		},
	} {
		got, next := slowLogOf(c.reply, c.next, 5)
		if diff := cmp.Diff(c.want, got); diff != "" || next != c.want.Total {
			t.Errorf("%s: next %d, (-want +got):\n%s", c.name, next, diff)
		}
	}
}

func TestLatencyEvents(t *testing.T) {
	event := list(bulk("aof-fsync-always"), integerReply("1700000000"), integerReply("25"), integerReply("310"))
	want := []record.LatencyEvent{{Name: "aof-fsync-always", Unix: 1700000000, LatestMillis: 25, MaxMillis: 310}}
	if diff := cmp.Diff(want, latencyEvents(list(event, list(bulk("cut"))))); diff != "" {
		t.Error(diff)
	}
	var many []resp.Value
	for range 100 {
		many = append(many, event)
	}
	if got := latencyEvents(list(many...)); len(got) != record.MaxLatencyEvents {
		t.Errorf("%d events", len(got))
	}
}

func TestServerOf(t *testing.T) {
	text := "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:12\r\n" +
		"# Clients\r\nconnected_clients:51\r\n" +
		"# Memory\r\nused_memory:1000\r\nused_memory_rss:2000\r\nmaxmemory:4000\r\nmaxmemory_policy:noeviction\r\n" +
		"# Persistence\r\nloading:1\r\naof_enabled:1\r\naof_delayed_fsync:3\r\n# Stats\r\ntotal_commands_processed:77\r\n" +
		"rejected_connections:4\r\n" +
		"expired_keys:5\r\nevicted_keys:6\r\n# Replication\r\nrole:slave\r\n# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\n" +
		"used_cpu_sys_children:9\r\nused_cpu_sys_main_thread:1.0\r\nused_cpu_user_main_thread:2.0\r\n"
	want := record.Server{
		RunID: "abc", Name: "redis", Version: "7.0.15", Mode: "standalone", Role: "slave", UptimeSeconds: 12, Loading: true,
		CPUSeconds: 3.75, CPUMainThreadSeconds: 3, UsedMemory: 1000, UsedMemoryRSS: 2000, MaxMemory: 4000,
		MaxMemoryPolicy:  "noeviction",
		ConnectedClients: 51, RejectedConnections: 4, EvictedKeys: 6, ExpiredKeys: 5, CommandsProcessed: 77, AOFEnabled: true,
		AOFDelayedFsync: 3,
	}
	if diff := cmp.Diff(want, serverFromInfo(redis.ParseInfo(text))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	valkey := serverFromInfo(redis.ParseInfo(
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nserver_mode:standalone\r\n"))
	if valkey.Name != "valkey" || valkey.Version != "8.1.1" || valkey.Mode != "standalone" {
		t.Errorf("%+v", valkey)
	}
	if strange := serverFromInfo(redis.ParseInfo("used_memory:lots\r\nno colon\r\n:\r\n")); strange.UsedMemory != 0 {
		t.Errorf("%+v", strange)
	}
}

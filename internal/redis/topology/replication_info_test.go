package topology

import (
	"reflect"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

func TestReplicationOf(t *testing.T) {
	for name, tc := range map[string]struct {
		info string
		want ReplicationInfo
	}{
		"a primary, the most advanced replica first": {
			"# Replication\r\nrole:master\r\nconnected_slaves:3\r\n" +
				"slave0:ip=10.0.0.2,port=6379,state=online,offset=90,lag=1\r\n" +
				"slave1:ip=fd00::3,port=6380,state=online,offset=98,lag=0,type=replica\r\n" +
				"slave2:ip=10.0.0.4,port=6379,state=wait_bgsave,offset=0,lag=0\r\n" +
				"master_failover_state:no-failover\r\nmaster_replid:abc\r\nmaster_replid2:000\r\nmaster_repl_offset:98\r\n",
			ReplicationInfo{Role: Primary, Offset: 98, Failover: "no-failover", Replicas: []Attached{
				{Address: "[fd00::3]:6380", Online: true, Offset: 98},
				{Address: "10.0.0.2:6379", Online: true, Offset: 90, Lag: 1},
				{Address: "10.0.0.4:6379"},
			}},
		},
		"a replica": {
			"role:slave\r\nmaster_host:redis-0.redis\r\nmaster_port:6379\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\n" +
				"slave_read_repl_offset:80\r\nslave_repl_offset:77\r\nslave_priority:100\r\n" +
				"master_failover_state:no-failover\r\nmaster_repl_offset:76\r\n",
			ReplicationInfo{
				Role:     Replica,
				Offset:   77,
				Failover: "no-failover",
				Primary:  "redis-0.redis:6379",
				LinkUp:   true,
				WasUp:    true,
			},
		},
		"a replica that copies": {
			"role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n" +
				"master_sync_in_progress:1\r\nslave_repl_offset:0\r\n",
			ReplicationInfo{Role: Replica, Primary: "10.0.0.1:6379", Syncing: true},
		},
		"a replica that has lost its primary": {
			"role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n" +
				"master_link_down_since_seconds:7\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:77\r\n",
			ReplicationInfo{Role: Replica, Offset: 77, Primary: "10.0.0.1:6379", WasUp: true},
		},
		"a replica that never had one": {
			"role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n" +
				"master_link_down_since_seconds:-1\r\nmaster_sync_in_progress:0\r\nslave_repl_offset:0\r\n",
			ReplicationInfo{Role: Replica, Primary: "10.0.0.1:6379"},
		},
		"nothing": {"", ReplicationInfo{Role: Unknown}},
	} {
		if got := ReplicationOf(redis.ParseInfo(tc.info)); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestParseWatched(t *testing.T) {
	flat := []any{
		"name", "mymaster", "ip", "10.0.0.1", "port", "6379", "flags",
		"master,failover_in_progress,force_failover", "role-reported-time", "1500",
		"config-epoch", "7", "down-after-milliseconds", "5000",
	}
	want := Watched{
		Name:        "mymaster",
		Address:     "10.0.0.1:6379",
		ConfigEpoch: 7,
		FailingOver: true,
		DownAfter:   5 * time.Second,
		RoleFor:     1500 * time.Millisecond,
	}
	if got, err := ParseWatched(flat); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	quiet := []any{"name", "mymaster", "flags", "master,s_down", "config-epoch", "7"}
	if got, err := ParseWatched(quiet); err != nil || got != (Watched{Name: "mymaster", ConfigEpoch: 7}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseWatched("OK"); err == nil {
		t.Error("OK is a primary that is watched")
	}
}

func TestParseSentinelLists(t *testing.T) {
	if got := ParseWatchedNames([]any{
		[]any{"name", "b"},
		[]any{"name", "a"},
	}); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("names %q", got)
	}
	peers := ParsePeers([]any{
		[]any{"name", "x", "ip", "10.0.0.8", "port", "26379", "runid", "id-8", "flags", "sentinel"},
		[]any{"ip", "10.0.0.9", "port", "26379", "runid", "id-9", "flags", "s_down,sentinel,disconnected"},
		[]any{"ip", "10.0.0.7", "port", "26379", "runid", ""}, // no message since it was announced
	})
	if want := map[string]string{"id-8": "10.0.0.8:26379", "id-9": "10.0.0.9:26379"}; !reflect.DeepEqual(peers, want) {
		t.Errorf("peers %v, want %v", peers, want)
	}
	if got := ParsePrimaryAddress([]any{"redis-0.redis", "6379"}); got != "redis-0.redis:6379" {
		t.Errorf("primary %q", got)
	}
	if got := ParsePrimaryAddress(nil); got != "" {
		t.Errorf("no primary is %q", got)
	}
}

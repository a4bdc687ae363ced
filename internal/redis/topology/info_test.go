package topology

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/redis"
)

func TestServerOf(t *testing.T) {
	for _, tc := range []struct {
		name, info string
		want       Server
	}{
		{
			"redis primary",
			"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:61\r\n" +
				"# Persistence\r\nloading:1\r\n# Replication\r\nrole:master\r\n",
			Server{
				Address: "a:1", Name: "redis", Version: "7.0.15", Mode: "standalone", RunID: "abc", Uptime: 61 * time.Second,
				Loading: true, Role: Primary,
			},
		},
		{
			"valkey replica",
			"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nserver_mode:cluster\r\nrole:slave\r\n",
			Server{Address: "a:1", Name: "valkey", Version: "8.1.1", Mode: "cluster", Role: Replica},
		},
		{
			"sentinel has no role line",
			"redis_version:7.0.15\nredis_mode:sentinel\n",
			Server{Address: "a:1", Name: "redis", Version: "7.0.15", Mode: "sentinel", Role: Sentinel},
		},
		{
			"keydb active replica",
			"redis_version:6.3.4\r\nredis_mode:standalone\r\nrole:active-replica\r\nmaster_global_link_status:up\r\n",
			Server{Address: "a:1", Name: "redis", Version: "6.3.4", Mode: "standalone", Role: Active},
		},
		{"nothing", "", Server{Address: "a:1", Name: "redis", Role: Unknown}},
		{"no fields", "hello\n:::\nuptime_in_seconds:soon\n", Server{Address: "a:1", Name: "redis", Role: Unknown}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Replication = ReplicationOf(redis.ParseInfo(tc.info))
			if diff := cmp.Diff(tc.want, ServerOf("a:1", redis.ParseInfo(tc.info))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

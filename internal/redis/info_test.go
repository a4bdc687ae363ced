package redis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseInfo(t *testing.T) {
	info := ParseInfo(
		"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nserver_mode:cluster\r\nconfig_file:/a:b/c d.conf\r\n" +
			"# Memory\r\nused_memory:1000\r\nmaxmemory:lots\r\n# Persistence\r\nloading:1\r\naof_enabled:0\r\n# CPU\r\n" +
			"used_cpu_sys:1.5\r\nno colon\r\n\r\n" +
			"# Errorstats\r\nerrorstat_OOM:count=77\r\n# Keyspace\r\ndb0:keys=7,expires=1,avg_ttl=5\r\n" +
			"# Commandstats\r\ncmdstat_config|rewrite:calls=5,usec=1500,usec_per_call=300.00," +
			"rejected_calls=2,failed_calls=3\r\ncmdstat_get:calls=9,usec=1\r\n")
	if info["config_file"] != "/a:b/c d.conf" || info["role"] != "" {
		t.Errorf("text: %q", info)
	}
	if info.Int("used_memory") != 1000 || info.Int("maxmemory") != 0 || info.Int("none") != 0 ||
		info.Float("used_cpu_sys") != 1.5 || info.Float("maxmemory") != 0 {
		t.Errorf("numbers: %q", info)
	}
	if !info.On("loading") || info.On("aof_enabled") || info.On("none") {
		t.Errorf("switches: %q", info)
	}
	if diff := cmp.Diff(map[string]string{"keys": "7", "expires": "1", "avg_ttl": "5"}, info.Pairs("db0")); diff != "" {
		t.Error(diff)
	}
	if len(info.Pairs("none")) > 0 || len(info.Pairs("used_memory")) > 0 || info.Pairs("errorstat_OOM")["count"] != "77" {
		t.Errorf("pairs: %q", info)
	}
	if got, ok := info.Command("config|rewrite"); !ok ||
		got != (CommandStat{Calls: 5, Time: 1500 * time.Microsecond, Rejected: 2, Failed: 3}) {
		t.Errorf("CONFIG REWRITE: %+v, %v", got, ok)
	}
	if got, ok := info.Command("set"); ok || got != (CommandStat{}) {
		t.Errorf("SET: %+v, %v", got, ok)
	}
	for text, want := range map[string][3]string{
		"redis_version:7.0.15\nredis_mode:standalone\n": {
			"redis", "7.0.15",
			"standalone",
		},
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nserver_mode:cluster\r\n": {
			"valkey", "8.1.1",
			"cluster",
		},
		"redis_version:7.2.4\r\nvalkey_version:7.2.5\r\n": {
			"valkey", "7.2.5",
			"",
		},
		"": {"redis", "", ""},
	} {
		info := ParseInfo(text)
		if got := [3]string{info.Name(), info.Version(), info.Mode()}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Redis 6 counts CLIENT PAUSE as CLIENT; newer servers count nothing as that.
func TestCountedTogether(t *testing.T) {
	for text, want := range map[string]bool{
		"cmdstat_client:calls=4,usec=9\r\n":                                             true,
		"cmdstat_client|list:calls=4,usec=9\r\ncmdstat_config:calls=1,usec=1\r\n":       false,
		"cmdstat_client|pause:calls=4,usec=9\r\ncmdstat_client|list:calls=1,usec=1\r\n": false,
		"": false,
	} {
		if got := ParseInfo(text).Together("client|pause"); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if ParseInfo("cmdstat_get:calls=1,usec=1\r\n").Together("get") {
		t.Error("GET has no subcommands")
	}
}

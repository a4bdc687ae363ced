package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/redis"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestConfigDenied(t *testing.T) {
	for name, want := range map[string]string{
		"port": cutsOff, "requirepass": holdsSecret, "masterauth": holdsSecret, "primaryauth": holdsSecret, "tls-key-file-pass": cutsOff,
		"cluster-announce-ip": cutsOff, "replica-announce-port": cutsOff, "slave-announce-ip": cutsOff, "save": movesData, "dir": movesData,
		"dbfilename": movesData, "aclfile": holdsSecret, "enable-debug-command": "it controls who may run dangerous commands", "io-threads": otherFault,
		"replica-read-only": losesData,
		"maxclients":        "", "appendfsync": "", "timeout": "", "cluster-node-timeout": "", "replica-priority": "", "min-replicas-to-write": "",
	} {
		if got := denied(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A denied setting is refused before any server is queried. The message names the field and omits the value.
func TestConfigRefusesDenied(t *testing.T) {
	w := faulttest.NewWorld(t) // whose servers do not answer
	spec := &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultConfig, Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"timeout": "1", "requirepass": "hunter2"}}}}
	injector, err := Kinds.For(spec, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	problem := faulttest.ProblemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", Address: "10.0.0.1:6379"}))
	if problem.Reason != v1alpha1.ReasonInvalidSpec || !problem.Lasting || !strings.HasPrefix(problem.Message, "spec.action.config.parameters.requirepass:") {
		t.Errorf("%+v", problem)
	}
	if strings.Contains(problem.Message, "hunter2") {
		t.Errorf("the message contains the secret: %s", problem.Message)
	}
}

func TestConfigEvicts(t *testing.T) {
	type values = map[string]string
	noeviction, lru, bounded := values{"maxmemory": "0", "maxmemory-policy": "noeviction"}, values{"maxmemory": "0", "maxmemory-policy": "allkeys-lru"}, values{"maxmemory": "1000000", "maxmemory-policy": "volatile-ttl"}
	for _, tc := range []struct {
		name          string
		before, asked values
		want          bool
	}{
		{"a limit at which writes are refused", noeviction, values{"maxmemory": "100mb"}, false},
		{"a limit at which keys are evicted", lru, values{"maxmemory": "100mb"}, true},
		{"no limit", bounded, values{"maxmemory": "0"}, false},
		{"a higher limit, the policy as before", bounded, values{"maxmemory": "2m"}, false},
		{"the same limit, spelled otherwise", bounded, values{"maxmemory": "1m"}, false},
		{"a limit that is higher, in another unit", bounded, values{"maxmemory": "999kb"}, false},
		{"a limit that is lower", bounded, values{"maxmemory": "900k"}, true},
		{"another evicting policy", bounded, values{"maxmemory-policy": "allkeys-random"}, true},
		{"an evicting policy without a limit", noeviction, values{"maxmemory-policy": "allkeys-lru"}, false},
		{"both", noeviction, values{"maxmemory-policy": "allkeys-lru", "maxmemory": "1gb"}, true},
		{"eviction switched off", bounded, values{"maxmemory-policy": "noeviction", "maxmemory": "1"}, false},
		{"a limit that cannot be read", bounded, values{"maxmemory": "lots"}, true},
		{"a replica that minds its own limit", bounded, values{"replica-ignore-maxmemory": "no"}, true},
		{"a replica that minds a limit without evicting", noeviction, values{"replica-ignore-maxmemory": "no"}, false},
	} {
		if why := evicts(tc.before, tc.asked); (why != "") != tc.want {
			t.Errorf("%s: %q, want a reason: %v", tc.name, why, tc.want)
		}
	}
}

func TestMemorySize(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "1": 1, "7b": 7, "1k": 1000, "1kb": 1024, "100mb": 104857600, "2M": 2000000, "1gb": 1 << 30} {
		if got, ok := memorySize(text); !ok || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "mb", "-1", "10%", "1tb", "1 mb"} {
		if got, ok := memorySize(text); ok {
			t.Errorf("%q was parsed as %d, want an error", text, got)
		}
	}
}

// The count of CONFIG REWRITE as Redis 7.0.15 reports it, and a server that does not count subcommands.
func TestTallyCountsRewrites(t *testing.T) {
	const get = "cmdstat_config|get:calls=2,usec=18,usec_per_call=9.00,rejected_calls=0,failed_calls=0\r\n"
	for _, tc := range []struct {
		info    string
		n       int64
		counted bool
	}{
		{get, 0, true},
		{get + "cmdstat_config|rewrite:calls=5,usec=1852,usec_per_call=1852.00,rejected_calls=1,failed_calls=2\r\n", 3, true},
		{"cmdstat_config:calls=7,usec=18,usec_per_call=9.00\r\n", 0, false},
	} {
		if now, counted := tallyOf(redis.ParseInfo(tc.info)); now.Rewrites != tc.n || counted != tc.counted {
			t.Errorf("%q: %d, %v; want %d, %v", tc.info, now.Rewrites, counted, tc.n, tc.counted)
		}
	}
}

// A reset shows by any of its traces, though a busy server soon has more commands than before, and though one was sent before the fault as well.
func TestTallyShowsReset(t *testing.T) {
	stats := func(commands, sets, checks, reset int) tally {
		text := fmt.Sprintf("total_commands_processed:%d\r\ncmdstat_config|set:calls=%d\r\ncmdstat_acl|dryrun:calls=%d\r\n", commands, sets, checks)
		if reset > 0 {
			text += fmt.Sprintf("cmdstat_config|resetstat:calls=1,usec=%d\r\n", reset)
		}
		now, _ := tallyOf(redis.ParseInfo(text))
		return now
	}
	for name, tc := range map[string]struct {
		before, now tally
		want        bool
	}{
		"nothing":                             {stats(100, 2, 3, 0), stats(100, 2, 3, 0), false},
		"traffic and other faults":            {stats(100, 2, 3, 0), stats(900, 5, 7, 0), false},
		"one before":                          {stats(100, 2, 3, 38), stats(900, 5, 7, 38), false},
		"the first one":                       {stats(100, 2, 3, 0), stats(900, 5, 7, 38), true},
		"another one":                         {stats(100, 2, 3, 38), stats(900, 5, 7, 39), true},
		"another one that took as long":       {stats(100, 2, 3, 38), stats(900, 5, 1, 38), true},
		"another one, and few commands since": {stats(100, 2, 3, 38), stats(99, 2, 3, 38), true},
	} {
		if got := tc.before.resetBefore(tc.now); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// The manual revert command can be pasted into a shell; it contains no secret.
func TestConfigManualRevertCommand(t *testing.T) {
	w := faulttest.NewWorld(t)
	deps := w.Deps()
	target := &v1alpha1.FaultTarget{Pod: "redis-0", Container: "redis", Address: "10.0.0.1:6380"}
	faulttest.Save(t, target, settingsRecord{Old: map[string]string{"client-output-buffer-limit": "normal 0 0 0", "notify-keyspace-events": ""}, File: "/data/redis.conf"})
	spec := &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultConfig, Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"client-output-buffer-limit": "normal 1 1 1", "notify-keyspace-events": "KEA"}}}}
	if got, want := newConfig(spec, deps).ManualRevertCommand(target), "kubectl -n shop exec redis-0 -c redis -- redis-cli -e -p 6380 CONFIG SET client-output-buffer-limit 'normal 0 0 0' notify-keyspace-events ''"+
		" && kubectl -n shop exec redis-0 -c redis -- redis-cli -e -p 6380 CONFIG REWRITE"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	deps.Login = redis.Login{Username: "ops", Password: "hunter2"}
	faulttest.Save(t, target, settingsRecord{Old: map[string]string{"maxclients": "10000"}})
	spec.Action.Config.Parameters = map[string]v1alpha1.ParameterValue{"maxclients": "1"}
	if got, want := newConfig(spec, deps).ManualRevertCommand(target), "until kubectl -n shop exec -it redis-0 -c redis -- redis-cli -e -p 6380 --user ops --askpass CONFIG SET maxclients 10000 | grep -q OK; do sleep 1; done"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := newConfig(spec, deps).ManualRevertCommand(&v1alpha1.FaultTarget{Pod: "redis-0"}); got != "" {
		t.Errorf("command without a record: %q, want none", got)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"redis-0": "redis-0", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "60%": "60%", `{"a":1}`: `'{"a":1}'`} {
		if got := target.ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

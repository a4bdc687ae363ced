package config

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestConfigDenied(t *testing.T) {
	for name, want := range map[string]string{
		"port": cutsOff, "requirepass": holdsSecret, "masterauth": holdsSecret, "primaryauth": holdsSecret,
		"tls-key-file-pass":   cutsOff,
		"cluster-announce-ip": cutsOff, "replica-announce-port": cutsOff, "slave-announce-ip": cutsOff, "save": movesData,
		"dir":        movesData,
		"dbfilename": movesData, "aclfile": holdsSecret, "enable-debug-command": "it controls who may run dangerous commands",
		"io-threads":        otherFault,
		"replica-read-only": losesData,
		"maxclients":        "", "appendfsync": "", "timeout": "", "cluster-node-timeout": "", "replica-priority": "",
		"min-replicas-to-write": "",
	} {
		if got := denied(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A denied setting is refused before any server is queried. The message names the field and omits the value.
func TestConfigRefusesDenied(t *testing.T) {
	w := faulttest.NewWorld(t) // whose servers do not answer
	spec := &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:   v1alpha1.FaultConfig,
			Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"timeout": "1", "requirepass": "hunter2"}},
		},
	}
	injector, err := Kinds.For(spec, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	problem := faulttest.ProblemOf(t,
		injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", Address: "10.0.0.1:6379"}))
	if problem.Reason != v1alpha1.ReasonInvalidSpec || !problem.Lasting ||
		!strings.HasPrefix(problem.Message, "spec.action.config.parameters.requirepass:") {
		t.Errorf("%+v", problem)
	}
	if strings.Contains(problem.Message, "hunter2") {
		t.Errorf("the message contains the secret: %s", problem.Message)
	}
}

func TestConfigEvicts(t *testing.T) {
	type values = map[string]string
	noeviction := values{"maxmemory": "0", "maxmemory-policy": "noeviction"}
	lru := values{"maxmemory": "0", "maxmemory-policy": "allkeys-lru"}
	bounded := values{"maxmemory": "1000000", "maxmemory-policy": "volatile-ttl"}
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
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "7b": 7, "1k": 1000, "1kb": 1024, "100mb": 104857600, "2M": 2000000, "1gb": 1 << 30,
	} {
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

// The manual revert command can be pasted into a shell; it contains no secret.
func TestConfigManualRevertCommand(t *testing.T) {
	w := faulttest.NewWorld(t)
	deps := w.Deps()
	target := &v1alpha1.FaultTarget{Pod: "redis-0", Container: "redis", Address: "10.0.0.1:6380"}
	faulttest.Save(t, target, settingsRecord{
		Old:  map[string]string{"client-output-buffer-limit": "normal 0 0 0", "notify-keyspace-events": ""},
		File: "/data/redis.conf",
	})
	spec := &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type: v1alpha1.FaultConfig,
			Config: &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{
					"client-output-buffer-limit": "normal 1 1 1",
					"notify-keyspace-events":     "KEA",
				},
			},
		},
	}
	if got, want := newConfig(spec, deps).ManualRevertCommand(target),
		"kubectl -n shop exec redis-0 -c redis -- redis-cli -e -p 6380 CONFIG SET client-output-buffer-limit 'normal 0 0 "+
			"0' notify-keyspace-events ''"+
			" && kubectl -n shop exec redis-0 -c redis -- redis-cli -e -p 6380 CONFIG REWRITE"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	deps.Login = redis.Login{Username: "ops", Password: "hunter2"}
	faulttest.Save(t, target, settingsRecord{Old: map[string]string{"maxclients": "10000"}})
	spec.Action.Config.Parameters = map[string]v1alpha1.ParameterValue{"maxclients": "1"}
	if got, want := newConfig(spec, deps).ManualRevertCommand(target),
		"until kubectl -n shop exec -it redis-0 -c redis -- redis-cli -e -p 6380 --user ops --askpass CONFIG SET "+
			"maxclients 10000 | grep -q OK; do sleep 1; done"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := newConfig(spec, deps).ManualRevertCommand(&v1alpha1.FaultTarget{Pod: "redis-0"}); got != "" {
		t.Errorf("command without a record: %q, want none", got)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"redis-0": "redis-0", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "60%": "60%",
		`{"a":1}`: `'{"a":1}'`,
	} {
		if got := target.ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

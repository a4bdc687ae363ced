package v1alpha1

import (
	"slices"
	"testing"
)

// What two actions both change has one name, whatever the fault calls it.
func TestChanges(t *testing.T) {
	setting := func(names ...string) *Action {
		a := &Action{Type: FaultConfig, Config: &Config{Parameters: map[string]ParameterValue{}}}
		for _, name := range names {
			a.Config.Parameters[name] = "1"
		}
		return a
	}
	for name, pair := range map[string][2]*Action{
		"a setting of replicas": {setting("min-slaves-to-write"), setting("min-replicas-to-write")},
		"of a list":             {setting("hash-max-ziplist-entries"), setting("hash-max-listpack-entries")},
		"of scripts":            {setting("lua-time-limit"), setting("hz", "busy-reply-threshold")},
		"of Valkey":             {setting("primaryauth"), setting("masterauth")},
		"of Valkey's log":       {setting("commandlog-slow-execution-max-len"), setting("slowlog-max-len")},
		"in capitals":           {setting("HZ"), setting("hz")},
		"a pause and a hang":    {{Type: FaultClientPause}, {Type: FaultHang}},
		"a pause and such a hang": {
			{Type: FaultClientPause}, {Type: FaultHang, Hang: &Hang{Method: HangClientPause}},
		},
		"a pause and a coordinated failover": {
			{Type: FaultClientPause}, {Type: FaultFailover, Failover: &Failover{Mode: FailoverCoordinated}},
		},
		"one type": {{Type: FaultPodKill}, {Type: FaultPodKill}},
	} {
		if a, b := pair[0].Changes(), pair[1].Changes(); !slices.ContainsFunc(a, func(what string) bool {
			return slices.Contains(b, what)
		}) {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	for name, pair := range map[string][2]*Action{
		"two settings":                 {setting("hz"), setting("timeout")},
		"a pause and a plain failover": {{Type: FaultClientPause}, {Type: FaultFailover}},
		"a pause and another hang": {
			{Type: FaultClientPause}, {Type: FaultHang, Hang: &Hang{Method: HangDebugSleep}},
		},
	} {
		if a, b := pair[0].Changes(), pair[1].Changes(); slices.ContainsFunc(a, func(what string) bool {
			return slices.Contains(b, what)
		}) {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}

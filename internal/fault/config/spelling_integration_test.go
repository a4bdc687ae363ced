//go:build integration

package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// special are values of settings that are neither numbers nor words of a list.
var special = map[string][]string{
	"client-output-buffer-limit":             {"normal 1mb 0 0", "pubsub 1gb 1MB 5 replica 1g 2g 3", "Slave 0 0 0"},
	"notify-keyspace-events":                 {"KEA", "Kgx", "g$lshzxetdKE", "AKEmn", ""},
	"latency-tracking-info-percentiles":      {"99.90 50", "50.0", ""},
	"oom-score-adj-values":                   {"1 20 30"},
	"shutdown-on-sigint":                     {"force nosave", "nosave now", "SAVE"},
	"shutdown-on-sigterm":                    {"now force"},
	"proc-title-template":                    {"{title} {listen-addr}"},
	"ignore-warnings":                        {"ARM64-COW-BUG"},
	"tls-protocols":                          {"TLSv1.3"},
	"cluster-replica-validity-factor":        {"0", "20"},
	"maxclients":                             {"100", "1000"},
	"repl-diskless-sync-max-replicas":        {"3"},
	"active-defrag-max-scan-fields":          {"5000"},
	"list-max-listpack-size":                 {"-1", "64"},
	"hash-max-listpack-entries":              {"100", "1k"},
	"availability-zone":                      {"eu-1"},
	"locale-collate":                         {"C"},
	"crash-log-enabled":                      {"NO"},
	"unixsocketgroup":                        {"root"},
	"slot-migration-max-failover-repl-bytes": {"1mb", "-1"},
}

// listed are the words of which a server allows one, in the error about another one.
var listed = regexp.MustCompile(`must be one of the following: (.*)`)

var number = regexp.MustCompile(`^-?\d+$`)

// spelledValues are values of a setting, in more than one spelling, of which a server refuses some.
func spelledValues(t *testing.T, server *redistest.Server, name, now string) []string {
	t.Helper()
	values := slices.Clone(special[name])
	if found := listed.FindStringSubmatch(refusalOf(t, server, name, "no-such-word")); found != nil {
		for word := range strings.SplitSeq(strings.TrimSpace(found[1]), ", ") {
			values = append(values, word, strings.ToUpper(word))
		}
	}
	switch {
	case now == "yes" || now == "no":
		values = append(values, "YES", "No", "yes", "no")
	case number.MatchString(now) && name != "maxclients": // a server with room for one client refuses the next one
		values = append(values, "1", "7", "60", "300", "1000", "2000", "1mb", "2GB", "100k", "64Mb", "512KB", "-1")
	}
	return values
}

func refusalOf(t *testing.T, server *redistest.Server, name, value string) string {
	t.Helper()
	if err := server.Client().Do(t.Context(), "config", "set", name, value).Err(); err != nil {
		return err.Error()
	}
	return ""
}

// Every setting that a server shows and the fault changes, with many values: what CONFIG GET shows is the value that
// was set, and none that was before.
func TestEveryValueIsRecognized(t *testing.T) { redistest.Each(t, testEveryValueIsRecognized) }

func testEveryValueIsRecognized(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	all := redistest.Pairs(server.Do("config", "get", "*"))
	changed, values := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if denied(name) != "" {
			continue
		}
		was := all[name]
		accepted := 0
		for _, value := range spelledValues(t, server, name, was) {
			if refusalOf(t, server, name, value) != "" {
				continue
			}
			accepted++
			shown := redistest.Pairs(server.Do("config", "get", name))[name]
			if !sameValue(name, value, shown) {
				t.Errorf("%s: %q is shown as %q, and not recognized", name, value, shown)
			}
			if value != was && shown != was && sameValue(name, was, shown) {
				t.Errorf("%s: %q counts as %q", name, shown, was)
			}
			server.Do("config", "set", name, was)
		}
		if accepted > 0 {
			changed++
		} else if refusalOf(t, server, name, was) == "" {
			t.Errorf("%s: no other value than %q was tried", name, was)
		}
		values += accepted
	}
	t.Logf("%d settings, %d values", changed, values)
	if changed < 100 {
		t.Errorf("%d settings were changed, want most of %d", changed, len(all))
	}
}

// The operator dies between CONFIG SET and the record of what CONFIG GET shows then: whatever the spelling, the value
// does not stay.
func TestConfigValueInAnySpellingIsReverted(t *testing.T) {
	redistest.Each(t, testConfigValueInAnySpellingIsReverted)
}

func testConfigValueInAnySpellingIsReverted(t *testing.T) {
	t.Parallel()
	for i, values := range []parameters{
		{
			"maxmemory":         "1GB",
			"repl-backlog-size": "4mB",
			"maxmemory-policy":  "NOEVICTION",
			"hz":                "1000",
			"activedefrag":      "No",
			"timeout":           "3",
		},
		{
			"notify-keyspace-events":            "KEA",
			"client-output-buffer-limit":        "replica 1gb 1gb 60 normal 1m 0 0",
			"latency-tracking-info-percentiles": "99.90 50.0",
			"shutdown-on-sigterm":               "NOW force",
			"loglevel":                          "WARNING",
		},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
			spec := configFault(values)
			_, target := s.Aim(spec)
			before := faulttest.Recorded[settingsRecord](t, target).Old
			faulttest.Must(t, faulttest.Called(s.Reborn(spec).Inject(t.Context(), target.DeepCopy())))
			wantWarning(t, reverted(t, s, spec, target))
			expectSettings(t, server, before)
		})
	}
}

//go:build integration

package config

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Anyone may reset the count of CONFIG REWRITE. Whether the file was rewritten before that cannot be seen: it is said,
// and nothing is written to the file that nobody wanted there.
func TestConfigFileAfterResetStat(t *testing.T) { redistest.Each(t, testConfigFileAfterResetStat) }

func testConfigFileAfterResetStat(t *testing.T) {
	t.Parallel()
	const unsure, rewritten, untouched = "unsure", "rewritten", "untouched"
	for _, tc := range []struct {
		name           string
		before, during string // what others send, before the fault is recorded and during it
		want           string
	}{
		{"nothing", "", "", untouched},
		{"a rewrite", "", "rewrite", rewritten},
		{"a reset", "", "resetstat", unsure},
		{"a rewrite, then a reset", "", "rewrite resetstat", unsure},
		{"a reset, then a rewrite", "", "resetstat rewrite", rewritten},
		{"a reset before each measurement", "resetstat", "rewrite resetstat", unsure},
		{"a reset before the fault alone", "rewrite resetstat", "", untouched},
		{"a rewrite before the fault, then a reset and a rewrite", "rewrite", "resetstat rewrite", rewritten},
		{"a rewrite before the fault alone", "rewrite", "", untouched},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
			for command := range strings.FieldsSeq(tc.before) {
				server.Do("config", command)
			}
			spec := configFault(parameters{"latency-monitor-threshold": "1"})
			injector, target := s.Aim(spec)
			faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), target)))
			for command := range strings.FieldsSeq(tc.during) {
				server.Do("config", command)
			}
			server.Do("config", "set", "timeout", "77") // an administrator's, for the running server only
			warnings := reverted(t, s, spec, target)
			expectSettings(t, server, map[string]string{"latency-monitor-threshold": "0"})
			onlyInMemory := inFile(t, server, "timeout") != "timeout 77"
			switch tc.want {
			case unsure:
				wantWarning(t, warnings, "pod redis-0", "CONFIG RESETSTAT", "latency-monitor-threshold 1", "CONFIG REWRITE",
					"kubectl -n shop exec redis-0")
			default:
				wantWarning(t, warnings)
			}
			if onlyInMemory != (tc.want != rewritten) {
				t.Errorf("the setting that is only in memory stays there alone: %t", onlyInMemory)
			}
			if tc.want != unsure && inFile(t, server, "latency-monitor-threshold") == "latency-monitor-threshold 1" {
				t.Error("the file has the fault's value")
			}
		})
	}
}

// A fault that was recorded and never injected has left nothing in the file.
func TestConfigThatWasNotInjectedDoesNotDoubtTheFile(t *testing.T) {
	t.Parallel()
	s, server := faulttest.NewHostedStage(t, Kinds, guard.Choose)
	spec := configFault(parameters{"latency-monitor-threshold": "1"})
	_, target := s.Aim(spec)
	server.Do("config", "resetstat")
	wantWarning(t, reverted(t, s, spec, target))
}

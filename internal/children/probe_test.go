package children

import (
	"slices"
	"strings"
	"testing"
)

// TestProbeOfALoadThatOnlyReads: it reads as well, so that a load without writes needs no right to write and leaves
// nothing; the field operation decides otherwise.
func TestProbeOfALoadThatOnlyReads(t *testing.T) {
	write, read := []string{"SET", "rq:probe:{user}", "{seq}", "EX", "60"}, []string{"GET", "rq:probe:{user}"}
	for _, tt := range []struct {
		workload, rest string
		want           []string
	}{
		{`{commands: [{name: get, command: [GET, "{key}"]}]}`, ``, read},
		{`{commands: [{name: a, command: [get, "{key}"]}, {name: b, command: [OBJECT, ENCODING, "{key}"]}]}`, ``, read},
		{`{commands: [{name: get, command: [GET, "{key}"]}], keyspace: {prefill: true}}`, ``, read},
		{`{commands: [{name: get, command: [GET, "{key}"]}, {name: set, command: [SET, "{key}", x]}]}`, ``, write},
		{`{commands: [{name: eval, command: [EVAL, "return 1", "0"]}]}`, ``, write},
		{`{benchmark: {tests: [get, lrange_100]}}`, ``, read},
		{`{benchmark: {tests: [get, lpop]}}`, ``, write},
		{`{ranking: {members: 100, weights: {get: 1}}}`, ``, read},
		{`{ranking: {members: 100}}`, ``, write},
		{`{rateLimiter: {limit: 1, window: 1s}}`, ``, write},
		{`{http: {url: "http://shop"}}`, ``, write}, // what the API does is not known
		{`{commands: [{name: get, command: [GET, "{key}"]}]}`, `verify: {acknowledgedWrites: true}`, write},
		{`{commands: [{name: get, command: [GET, "{key}"]}]}`, `probe: {operation: Write}`, write},
		{`{commands: [{name: get, command: [GET, "{key}"]}]}`, `probe: {rate: 5}`, read},
		{`{commands: [{name: set, command: [SET, "{key}", x]}]}`, `probe: {operation: Read}`, read},
		{`{commands: [{name: get, command: [GET, "{key}"]}]}`, `probe: {rate: 0}`, nil},
	} {
		made, err := Plan(loadTest(t, ofWorkload(tt.workload)+"\n"+tt.rest), addresses)
		if err != nil {
			t.Errorf("%s: %v", tt.workload, err)
			continue
		}
		if !slices.Equal(made.Probe.Words, tt.want) {
			t.Errorf("%s %s: the probe sends %s, want %s", tt.workload, tt.rest, strings.Join(made.Probe.Words, " "),
				strings.Join(tt.want, " "))
		}
	}
}

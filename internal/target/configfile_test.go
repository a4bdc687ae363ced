package target

import (
	"fmt"
	"testing"

	"github.com/redquake/redquake/internal/redis"
)

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
		if now := TallyOf(redis.ParseInfo(tc.info)); (now != nil) != tc.counted || now != nil && now.Rewrites != tc.n {
			t.Errorf("%q: %+v; want %d, %v", tc.info, now, tc.n, tc.counted)
		}
	}
}

// A reset shows by any of its traces, though a busy server soon has more commands than before, and though one was sent
// before the fault as well.
func TestTallyShowsReset(t *testing.T) {
	stats := func(commands, sets, checks, reset int) *Tally {
		text := fmt.Sprintf("total_commands_processed:%d\r\ncmdstat_config|set:calls=%d\r\ncmdstat_acl|dryrun:calls=%d\r\n",
			commands, sets, checks)
		if reset > 0 {
			text += fmt.Sprintf("cmdstat_config|resetstat:calls=1,usec=%d\r\n", reset)
		}
		return TallyOf(redis.ParseInfo(text))
	}
	for name, tc := range map[string]struct {
		before, now *Tally
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

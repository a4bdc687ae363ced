package load

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// A load of which too many requests fail does not pass, whoever set no objective: 2,000 requests, of which the server
// refuses the reads, all of them or of some time.
func TestMinSuccess(t *testing.T) {
	const refused = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	for name, tt := range map[string]struct {
		args    []string
		until   time.Duration // from the start
		verdict string
		code    int
		why     string
	}{
		"most fail": {
			args:    []string{"--command", "99:GET {key}", "--command", "SET {key} {value}"},
			until:   time.Hour,
			verdict: "Fail",
			code:    cli.ExitFailed,
			why:     "% of 2000 requests",
		},
		"two in a hundred fail": {until: 40 * time.Millisecond, verdict: "Fail", code: cli.ExitFailed},
		"less than one":         {until: 15 * time.Millisecond, verdict: "Pass", why: "no objective was set"},
		"asked for less": {
			args:    []string{"--min-success", "90%"},
			until:   40 * time.Millisecond,
			verdict: "Pass",
			why:     "1 of 1 objectives are met",
		},
		"asked for more": {
			args:    []string{"--min-success", "99.99%"},
			until:   15 * time.Millisecond,
			verdict: "Fail",
			code:    cli.ExitFailed,
		},
		"any": {
			args:    []string{"--min-success", "0"},
			until:   40 * time.Millisecond,
			verdict: "Pass",
			why:     "no objective was set",
		},
		"another objective of errors": {
			args:    []string{"--max-error-rate", "5%"},
			until:   40 * time.Millisecond,
			verdict: "Pass",
			why:     "1 of 1 objectives are met",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				server := memredis.Start(t, network, inMemory, memredis.Options{})
				// the preparation has sent each command once
				time.AfterFunc(time.Nanosecond, func() { server.Answer("GET", refused) })
				time.AfterFunc(tt.until, func() { server.Answer("GET", "") })
				args := tt.args
				if tt.until < time.Hour {
					args = append(args, "--command", "GET {key}")
				}
				out, _, err := loadInMemory(t.Context(), t, network, append(args, "--rate", "1000", "--duration", "2s")...)
				code := cli.ExitOK
				if f, ok := errors.AsType[*cli.Failure](err); ok {
					code = f.Code
				}
				r := clitest.Result(t, out)
				if r.Verdict != tt.verdict || code != tt.code || r.Total.Errors() == 0 {
					t.Errorf("%s, exit code %d: %s; want %s and %d\n%+v", r.Verdict, code, r.Why, tt.verdict, tt.code, r.Total)
				}
				if tt.verdict == "Fail" {
					for _, want := range []string{"minSuccess is ", "requests were no success, most often ", "(WRONGTYPE Operation"} {
						if !strings.Contains(r.Why, want) {
							t.Errorf("%q is not in: %s", want, r.Why)
						}
					}
				} else if !strings.Contains(r.Why, tt.why) {
					t.Errorf("%q is not in: %s", tt.why, r.Why)
				}
			})
		})
	}
}

package load

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthBoundsOfALoadsGap: the server does not run for 600 ms, in a run so short that the outage is in the 99th
// percentile of its latencies.
func TestTruthBoundsOfALoadsGap(t *testing.T) {
	const down = 600 * time.Millisecond
	for name, args := range map[string][]string{
		"open loop, 1000/s":              {"--rate", "1000"},
		"open loop, 1000/s, multiplexed": {"--rate", "1000", "--mode", "Multiplexed"},
		"closed loop":                    {"--users", "10", "--added-latency", "10ms"},
		"closed loop of one user":        {"--users", "1", "--added-latency", "1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				server := memredis.Start(t, network, inMemory, memredis.Options{})
				time.AfterFunc(1501*time.Millisecond, server.Stop)
				time.AfterFunc(1501*time.Millisecond+down, server.Continue)
				out, _, err := loadInMemory(t.Context(), t, network, append(args, "--duration", "4s")...)
				if err != nil {
					t.Fatal(err)
				}
				// Nothing is usual above the time between requests and that of a reply, 11 ms at most, or the server's backlog, 1.2
				// ms.
				r := clitest.Result(t, out)
				for what, g := range map[string]*result.Gap{"load": r.LongestGap, "probe": r.ProbeGap} {
					least := down - 25*time.Millisecond
					truth.Report(t, "bounds", "redquake load, "+name+", gap of the "+what, fmt.Sprintf("%v, at least %v", down, least),
						clitest.GapText(g),
						g != nil && time.Duration(g.AtLeast) >= least && time.Duration(g.AtLeast) <= down &&
							time.Duration(g.AtMost) >= down)
				}
			})
		})
	}
}

// TestTruthWritesOfALoadFail has a demoted primary refuse writes for 3 s and serve reads: a time without a write is one
// for the application.
func TestTruthWritesOfALoadFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, inMemory, memredis.Options{})
		const from, broken = 4 * time.Second, 3 * time.Second
		time.AfterFunc(from, func() { server.SetReadOnly(true) })
		time.AfterFunc(from+broken, func() { server.SetReadOnly(false) })
		out, _, err := loadInMemory(t.Context(), t, network, "--rate", "1000", "--duration", "10s", "--command",
			"SET {key} {value}", "--command", "4:GET {key}", "--min-success", "0")
		if err != nil {
			t.Fatal(err)
		}
		// A fifth of the requests, drawn at random, are writes: every 5 ms on average, and in one of 5 billion cases more than 100
		// ms apart.
		const apart = 100 * time.Millisecond
		about := func(g *result.Gap) bool {
			return g != nil && (time.Duration(g.Length)-broken).Abs() < apart &&
				time.Duration(g.AtLeast) > broken-apart &&
				time.Duration(g.AtLeast) <= broken && time.Duration(g.AtMost) >= broken
		}
		r := clitest.Result(t, out)
		truth.Report(t, "T3", "redquake load, 80% GET succeed, all SET get READONLY for 3 s", "gap of Writes 3s",
			clitest.GapText(r.LongestGap),
			r.LongestGap != nil && r.LongestGap.Of == impact.Writes && about(r.LongestGap))
		if set, get := r.Operations[0].LongestGap,
			r.Operations[1].LongestGap; !about(set) || get != nil || !about(r.WriteGap) || r.ReadGap != nil {
			t.Errorf("gaps: set %s, get %s, writes %s, reads %s", clitest.GapText(set), clitest.GapText(get),
				clitest.GapText(r.WriteGap), clitest.GapText(r.ReadGap))
		}
	})
}

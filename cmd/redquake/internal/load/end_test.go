package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// A run need not end where an interval of its record does: what comes after its end is no time without a success.
func TestRunThatEndsWithinAnInterval(t *testing.T) {
	for name, args := range map[string][]string{
		"open loop, 20 ms over":    {"--rate", "500", "--duration", "3020ms"},
		"closed loop, 20 ms over":  {"--users", "10", "--added-latency", "10ms", "--duration", "3020ms"},
		"intervals of 1 s":         {"--rate", "500", "--duration", "3500ms", "--interval", "1s"},
		"multiplexed":              {"--rate", "500", "--duration", "3020ms", "--mode", "Multiplexed"},
		"ended after its requests": {"--rate", "500", "--requests", "1510"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				memredis.Start(t, network, inMemory, memredis.Options{})
				out, _, err := loadInMemory(t.Context(), t, network, args...)
				if err != nil {
					t.Fatal(err)
				}
				r := clitest.Result(t, out)
				for what, g := range map[string]*result.Gap{"load": r.LongestGap, "probe": r.ProbeGap} {
					if g != nil && (g.Open || time.Duration(g.Length) > 20*time.Millisecond) {
						t.Errorf("a gap of the %s, though the server served all the time: %+v", what, *g)
					}
				}
			})
		})
	}
}

// The gap of a server that is down at such an end ends with the run.
func TestOutageAtTheEndOfARunWithinAnInterval(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, inMemory, memredis.Options{})
		time.AfterFunc(2901*ms, server.Stop)
		out, _, err := loadInMemory(t.Context(), t, network, "--rate", "500", "--duration", "3520ms", "--interval", "1s",
			"--min-success", "0")
		if err != nil {
			t.Fatal(err)
		}
		r := clitest.Result(t, out)
		for what, g := range map[string]*result.Gap{"load": r.LongestGap, "probe": r.ProbeGap} {
			if g == nil || !g.Open || (time.Duration(g.At+g.Length)-3520*ms).Abs() > 30*ms ||
				(time.Duration(g.AtMost)-620*ms).Abs() > 40*ms || time.Duration(g.AtLeast) < 550*ms {
				t.Errorf("the gap of the %s: %+v", what, g)
			}
		}
	})
}

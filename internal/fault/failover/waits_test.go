package failover

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// Hanging sentinels delay an effect check by confine.QueryTimeout, whatever their number.
func TestFailoverAsksSentinelsWithinLimits(t *testing.T) {
	for hanging, wantText := range map[int]string{
		0: "3 of 3 sentinels name",
		1: "2 of 3 sentinels name",
		2: "no majority of the 3 sentinels",
	} {
		t.Run(fmt.Sprintf("%d hang", hanging), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, hit := sentinelWorld(t, nil)
				injector := sentinelInjector(t, w, "").(failover)
				faulttest.Must(t, injector.Preflight(t.Context(), hit))
				injector.Sentinels = sentinel.Set{Servers: w.Servers}
				var peers []any
				for i := range 3 {
					injector.Sentinels.Addresses = append(injector.Sentinels.Addresses, fmt.Sprintf("10.0.1.%d:26379", i))
					peers = append(peers, []any{"runid", fmt.Sprintf("id-%d", i), "ip", fmt.Sprintf("10.0.1.%d", i), "port", "26379"})
				}
				w.Servers.Script("SENTINEL SENTINELS m", faulttest.Reply(peers))
				for i, address := range injector.Sentinels.Addresses {
					sentinel := w.Servers.Start(address, memredis.State{Mode: "sentinel"})
					sentinel.Script("SENTINEL MYID", faulttest.Reply(fmt.Sprintf("id-%d", i)))
					if i < hanging {
						sentinel.Stop()
					}
				}
				began := time.Now()
				_, evidence := injector.Effect(t.Context(), hit)
				if !strings.Contains(evidence, wantText) {
					t.Errorf("got evidence %q, want one that contains %q", evidence, wantText)
				}
				want := confine.QueryTimeout
				if hanging == 0 {
					want = 0
				}
				faulttest.Lasted(t, "the look", began, want)
			})
		})
	}
}

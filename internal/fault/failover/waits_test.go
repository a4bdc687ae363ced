package failover

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// Hanging sentinels delay an effect check by target.QueryTimeout, whatever their number.
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
				injector.Sentinels = target.Sentinels{Servers: w.Servers}
				var peers []any
				for i := range 3 {
					injector.Sentinels.Addresses = append(injector.Sentinels.Addresses, fmt.Sprintf("10.0.1.%d:26379", i))
					peers = append(peers, []any{"runid", fmt.Sprintf("id-%d", i), "ip", fmt.Sprintf("10.0.1.%d", i), "port", "26379"})
				}
				one := w.Servers.Answer
				w.Servers.Answer = func(address string, command ...any) (any, error) {
					switch words := strings.TrimSpace(fmt.Sprintln(command...)); {
					case words == "SENTINEL MYID":
						return "id-" + address[len("10.0.1."):len("10.0.1.0")], nil
					case words == "SENTINEL SENTINELS m":
						return peers, nil
					}
					w.Servers.Mu.Lock()
					defer w.Servers.Mu.Unlock()
					return one(address, command...)
				}
				w.Servers.Takes = func(address string) time.Duration {
					if address[:6] == "10.0.1" && int(address[7]-'0') < hanging {
						return faulttest.Never(address)
					}
					return 0
				}
				began := time.Now()
				_, evidence := injector.Effect(t.Context(), hit)
				if !strings.Contains(evidence, wantText) {
					t.Errorf("got evidence %q, want one that contains %q", evidence, wantText)
				}
				want := target.QueryTimeout
				if hanging == 0 {
					want = 0
				}
				faulttest.Lasted(t, "the look", began, want)
			})
		})
	}
}

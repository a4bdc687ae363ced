package record

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/truth"
)

// TestTruthReadingsOfServersAreBounded: in a day, 6 servers are read 518,400 times. The first and the newest reading of each stay.
func TestTruthReadingsOfServersAreBounded(t *testing.T) {
	t.Parallel()
	s := NewSeries("run", time.Time{}, time.Second, []string{"get"}, 1)
	const seconds = 24 * 3600
	for i := range int64(seconds) {
		var readings []Server
		for k := range 6 {
			readings = append(readings, Server{At: i * 1e9, Address: fmt.Sprint("redis-", k), RunID: "r", EvictedKeys: i})
		}
		s.addServers(readings)
	}
	kept := s.Servers()
	truth.Report(t, "T5", "readings kept of 6 servers after 24 h", "at most 4102", fmt.Sprint(len(kept)), len(kept) <= maxServerReadings+6)
	first, last := kept[0].EvictedKeys, kept[len(kept)-1].EvictedKeys
	truth.Report(t, "T5", "the counter's first and newest reading", fmt.Sprint("0 and ", seconds-1), fmt.Sprint(first, " and ", last), first == 0 && last == seconds-1)
}

package impact

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// A zone is lost for 60 s, and the servers are back after 14 s. Some milliseconds without a success long after that, as
// happen in any run, are not what the recovery waits for; what reverting the fault breaks is.
func TestTruthHiccupsOfALastingFault(t *testing.T) {
	for _, c := range []struct {
		name     string
		hiccup   summary.Window
		recovers time.Duration
	}{
		{"none", seconds(0, 0), 14 * time.Second},
		{"25 ms after 48.7 s", seconds(88.7, 88.725), 14 * time.Second},
		{"60 ms after 48.7 s", seconds(88.7, 88.76), 48760 * ms},
		{"25 ms when it is reverted", seconds(100.2, 100.225), 60225 * ms},
	} {
		s := recorded.Load{
			Rate:   300,
			Length: 130 * time.Second,
			Down:   []summary.Window{seconds(40, 54), c.hiccup},
		}.Record(t)
		s.Finish(0)
		m := Analyze(s, Fault{At: 40 * time.Second, SeenAt: 100 * time.Second, Deadline: 80 * time.Second}, Options{})
		off := m.RecoveryTime.Value - c.recovers
		truth.Report(t, "recovery", "14 s of 60 s without a server, and a hiccup: "+c.name, c.recovers.String(),
			fmt.Sprint(m.RecoveryTime), m.Recovered && off.Abs() < 20*ms)
	}
}

package target_test

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// The sentinel that leads a failover already names the promoted server while the reported time is still that of the old
// primary.
func TestSwitchTimeIgnoresTheOldPrimary(t *testing.T) {
	at := time.Now()
	leader := target.Watcher{
		Watched: topology.Watched{Address: "10.0.0.1:6379", FailingOver: true, RoleFor: 20 * time.Second},
		Primary: "10.0.0.2:6379",
	}
	w := target.Watchers{At: at, Answered: []target.Watcher{leader}}
	if got := w.Switched("10.0.0.2:6379"); !got.IsZero() {
		t.Errorf("switched %s ago, want no switch", at.Sub(got))
	}
	for _, since := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond} {
		w.Answered = append(w.Answered, target.Watcher{
			Watched: topology.Watched{Address: "10.0.0.2:6379", RoleFor: since},
			Primary: "10.0.0.2:6379",
		})
	}
	if got := at.Sub(w.Switched("10.0.0.2:6379")); got != 700*time.Millisecond {
		t.Errorf("switched %s ago, want 700ms", got)
	}
}

package usage

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record/merged"
)

// RoundTrip is how long a PING takes between the load pods and Redis, apart from the connections of
// the load. 0 = not measured.
type RoundTrip struct {
	// before the load: the shortest of some PINGs, of the pod for which it is shortest
	Idle     time.Duration
	Farthest time.Duration // the same of the pod for which it is longest
	// in the window: the median of the shortest of each second and pod; it includes waiting for a busy
	// Redis
	UnderLoad time.Duration
}

// Network returns the best estimate of the network's part: of the shortest PINGs, before and under
// load, the shorter one.
func (r RoundTrip) Network() time.Duration {
	if r.Idle == 0 || (r.UnderLoad > 0 && r.UnderLoad < r.Idle) {
		return r.UnderLoad
	}
	return r.Idle
}

// RoundTripOf returns the round trip of a run; ok is false if none was measured.
func RoundTripOf(s *merged.Series, w Window) (r RoundTrip, ok bool) {
	var loaded []int64
	for _, a := range s.Agents() {
		if idle := time.Duration(a.IdleRoundTrip); idle > 0 {
			if r.Idle == 0 || idle < r.Idle {
				r.Idle = idle
			}
			r.Farthest = max(r.Farthest, idle)
		}
		if a.RoundTrip > 0 && w.contains(a.At) {
			loaded = append(loaded, a.RoundTrip)
		}
	}
	if n := len(loaded); n > 0 {
		slices.Sort(loaded)
		r.UnderLoad = time.Duration(loaded[n/2])
	}
	return r, r.Idle > 0 || r.UnderLoad > 0
}

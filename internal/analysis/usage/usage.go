// Package usage computes what was used around a load over a part of its run: by each Redis server,
// by the load pods, by observed pods, and how much of the latency is the network's.
package usage

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Window is the part [From, To) of a run that the figures are about, from the start.
type Window struct{ From, To time.Duration }

// tolerance is the longest delay of a reading after the end of its interval.
const tolerance = 100 * time.Millisecond

// contains reports whether a reading belongs to the window; one just after the end does.
func (w Window) contains(at int64) bool {
	return time.Duration(at) >= w.From && time.Duration(at) <= w.To+tolerance
}

// CPU is a usage of CPU in cores.
type CPU struct {
	Mean  float64
	Max   float64 // over the busiest stretch of record.BusyStretch; of observed pods, over a reading
	Limit float64 // of each pod; 0 = none
}

// mean is a mean over time.
type mean struct{ sum, seconds float64 }

func (m *mean) add(sum float64, over time.Duration) {
	m.sum += sum
	m.seconds += over.Seconds()
}

func (m *mean) value() float64 {
	if m.seconds == 0 {
		return 0
	}
	return m.sum / m.seconds
}

// shortest is the shortest time between two readings of which the use is taken: over less, the
// delay of a reading would distort it.
const shortest = 200 * time.Millisecond

// busiest raises a maximum to the use over a stretch that is in the window, in cores.
func (w Window) busiest(most *float64, b *record.Busy, micros int64) {
	if b.Length() > 0 && time.Duration(b.From) >= w.From && w.contains(b.To) {
		*most = max(*most, float64(micros)/1e6/b.Length().Seconds())
	}
}

// LoadPods returns the CPU usage of the load pods: the mean of a pod, and the highest of any pod
// over its busiest stretch of record.BusyStretch; where the window is shorter, its highest mean.
// The limit is the lowest. ok is false if there are no two readings of a pod.
func LoadPods(s *merged.Series, w Window) (cpu CPU, ok bool) {
	last := map[int]record.AgentUse{}
	pods := map[int]*mean{}
	var all mean
	for _, a := range s.Agents() {
		w.busiest(&cpu.Max, &a.Busiest, a.Busiest.CPU)
		before, known := last[a.Pod]
		took := time.Duration(a.At - before.At)
		if known && took < shortest {
			continue // the next reading is compared with before, not with this one
		}
		last[a.Pod] = a
		if !known || !w.contains(before.At) || !w.contains(a.At) || a.CPUSeconds < before.CPUSeconds {
			continue
		}
		if pods[a.Pod] == nil {
			pods[a.Pod] = &mean{}
		}
		used := a.CPUSeconds - before.CPUSeconds
		all.add(used, took)
		pods[a.Pod].add(used, took)
		if a.CPULimit > 0 && (cpu.Limit == 0 || a.CPULimit < cpu.Limit) {
			cpu.Limit = a.CPULimit
		}
	}
	for _, pod := range pods {
		cpu.Max = max(cpu.Max, pod.value())
	}
	cpu.Mean = all.value()
	return cpu, all.seconds > 0
}

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

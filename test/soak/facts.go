package soak

import (
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Facts are what was done and seen in a soak, by others than the operator as far as possible. The instants are of one
// machine's clock.
type Facts struct {
	Events      []Done
	Faults      []Seen[*v1alpha1.RedisFault]
	LoadTests   []Seen[*v1alpha1.RedisLoadTest]
	Experiments []Seen[*v1alpha1.RedisExperiment]

	Able  Samples              // whether the API server answered, and a manager renewed the Lease
	Marks map[string]*Sighting // effects of faults, by mark
	Polls map[string][]time.Time

	Records map[string]bool // ConfigMaps with the record of a load test that were seen, by namespace/name

	Before, After map[string]string // settings, workloads, roles; see the test
	Left          []string          // what is left of objects that no longer exist
	Running       []string          // load pods that run although their load test has ended

	Pulses      []Pulse
	FirstAnswer time.Duration // to a new object at the end; negative = none

	Restarts []Restart
	Panics   []string // lines of the managers' logs

	AtFirst, AtLast Process // the manager, idle
	CPU             CPU     // of all managers
}

// Done is an event that was carried out.
type Done struct {
	Event
	Began, Ended time.Time // accepted, and taken back where it is; zero = it was not
	Target       string    // what it hit, such as a pod
	Err          string    // why it was not carried out
}

// Seen is the last version of an object that was seen.
type Seen[T any] struct {
	Object T
	World  string
	Gone   bool // it does not exist any more
}

// Sighting is when an effect was seen from outside. A mark is of one fault.
type Sighting struct{ First, Last time.Time } // zero = never

// See notes that a mark was there at an instant.
func (f *Facts) See(mark string, at time.Time) {
	s := f.Marks[mark]
	if s == nil {
		s = &Sighting{First: at}
		f.Marks[mark] = s
	}
	s.Last = latest(s.Last, at)
}

// Pulse is a new object, and when the operator first wrote to its status.
type Pulse struct {
	Name              string
	Created, Answered time.Time // Answered zero = never
	Watched           time.Time // until when an answer was waited for
}

// Restart is the end of a manager's container.
type Restart struct {
	Pod    string
	Number int32 // how often the container had been restarted before
	At     time.Time
	Reason string
	Code   int32
	Said   string // the error with which it ended itself; "" = it did not
}

// Process is what a manager uses when it has nothing to do.
type Process struct {
	Pod        string  `json:"pod"`
	Age        float64 `json:"ageSeconds"`
	Goroutines float64 `json:"goroutines"`
	Memory     float64 `json:"memoryBytes"`
}

// CPU is for how long threads ran, and for how long they could have run and waited for a CPU.
type CPU struct{ Ran, Waited time.Duration }

// Sample is one look.
type Sample struct {
	At time.Time
	OK bool
}

// Samples are looks in order.
type Samples []Sample

// longestGap is the longest time between two looks for which the earlier one counts.
const longestGap = 5 * time.Second

// Within is for how long it was so between two instants, without the first settling time of each stretch.
func (s Samples) Within(from, to time.Time, settling time.Duration) (sum time.Duration) {
	var began time.Time // of the stretch
	for i, sample := range s {
		if !sample.OK {
			began = time.Time{}
			continue
		}
		if began.IsZero() {
			began = sample.At
		}
		end := sample.At.Add(longestGap)
		if i+1 < len(s) && s[i+1].At.Before(end) {
			end = s[i+1].At
		}
		start := latest(from, sample.At, began.Add(settling))
		if stop := earliest(end, to); stop.After(start) {
			sum += stop.Sub(start)
		}
		if i+1 < len(s) && s[i+1].At.After(end) {
			began = time.Time{}
		}
	}
	return sum
}

// Longest is for how long it was so at most between two instants, in a stretch without interruptions of more than some
// time, which do not count.
func (s Samples) Longest(from, to time.Time, interruption time.Duration) (longest time.Duration) {
	var sum time.Duration
	var last time.Time // when it was so last
	for i, sample := range s {
		end := sample.At.Add(longestGap)
		if i+1 < len(s) {
			end = earliest(end, s[i+1].At)
		}
		start, stop := latest(from, sample.At), earliest(to, end)
		if !sample.OK || !stop.After(start) {
			continue
		}
		if start.Sub(last) > interruption {
			sum = 0
		}
		sum, last = sum+stop.Sub(start), stop
		longest = max(longest, sum)
	}
	return longest
}

func latest(of ...time.Time) time.Time {
	return slices.MaxFunc(of, time.Time.Compare)
}

func earliest(of ...time.Time) time.Time {
	return slices.MinFunc(of, time.Time.Compare)
}

// markOf is the mark of a fault; "" = its effect is not looked at from outside.
func markOf(world string, f *v1alpha1.RedisFault) string {
	a := f.Spec.Action
	switch a.Type {
	case v1alpha1.FaultConfig:
		if value, ok := a.Config.Parameters[MarkParameter]; ok { // settings of experiments have none
			return MarkConfig(world, string(value))
		}
	case v1alpha1.FaultResources:
		return MarkResources(world, a.Resources.CPU.MilliValue())
	case v1alpha1.FaultPodTemplate:
		return MarkTemplate(world, f.Name)
	case v1alpha1.FaultNodeLoss, v1alpha1.FaultDrain, v1alpha1.FaultVolumeAttachDelay:
		return MarkTaint(string(f.UID))
	}
	return ""
}

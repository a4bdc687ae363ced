package readings

import (
	"cmp"
	"slices"
	"time"
	"unsafe"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
)

const (
	// agentStep is the finest grid on which the load generators' readings are kept.
	agentStep = time.Second
	// maxAgentReadings bounds how many are kept over all pods; each pod keeps at least one.
	maxAgentReadings = 4096
)

// Agents are the readings of a run's load generators. Each pod has at most one per second: the last
// one, with the second's minimum round trip, maximum memory and busiest stretches. With many pods,
// or in a long run, it keeps one per 2 s, 4 s and so on. It is not safe for concurrent use.
type Agents struct {
	pods []agent       // by number
	step time.Duration // of the grid
	kept int           // readings over all pods
}

// agent are the readings of one pod.
type agent struct {
	list []record.AgentUse // by time
	busy recent
}

// NewAgents returns those of a number of pods, without any reading.
func NewAgents(pods int) Agents {
	return Agents{pods: make([]agent, pods), step: agentStep}
}

// All returns the readings by time, then by pod.
func (a *Agents) All() []record.AgentUse {
	var all []record.AgentUse
	for i := range a.pods {
		all = append(all, a.pods[i].list...)
	}
	slices.SortStableFunc(all, func(a, b record.AgentUse) int {
		return cmp.Or(cmp.Compare(a.At, b.At),
			cmp.Compare(a.Pod, b.Pod))
	})
	return all
}

// Add adds readings of a pod.
func (a *Agents) Add(pod int, uses []record.AgentUse) {
	p := &a.pods[pod]
	for i := range uses {
		before := len(p.list)
		use := uses[i]
		use.Pod = pod
		findBusiestOfAgent(&use, &p.busy)
		p.list = keepAgent(p.list, use, a.step)
		a.kept += len(p.list) - before
	}
	a.thin()
}

// thin doubles the grid's step until there are at most maxAgentReadings. The result does not depend
// on the order of the readings.
func (a *Agents) thin() {
	for a.kept > maxAgentReadings && a.step < 1<<20*agentStep {
		a.step *= 2
		a.kept = 0
		for i := range a.pods {
			var kept []record.AgentUse
			for _, use := range a.pods[i].list {
				kept = keepAgent(kept, use, a.step)
			}
			a.pods[i].list = kept
			a.kept += len(kept)
		}
	}
}

// Size is the memory that the readings take, in bytes.
func (a *Agents) Size() int {
	return a.kept*int(unsafe.Sizeof(record.AgentUse{})) + len(a.pods)*int(unsafe.Sizeof(agent{}))
}

// AppendPod writes the readings of a pod.
func (a *Agents) AppendPod(dst []byte, pod int) []byte {
	return record.AppendMergedAgents(dst, a.pods[pod].list)
}

// ReadPod reads the output of AppendPod for a pod that has no readings yet.
func (a *Agents) ReadPod(r *codec.Reader, pod int) {
	a.pods[pod].list = record.ReadMergedAgents(r)
	a.kept += len(a.pods[pod].list)
}

// AppendGrid writes the step of the grid.
func (a *Agents) AppendGrid(dst []byte) []byte {
	return codec.AppendUint(dst, uint64(a.step/agentStep))
}

// ReadGrid reads the output of AppendGrid.
func (a *Agents) ReadGrid(r *codec.Reader) {
	steps := r.Uint()
	if steps == 0 || steps > 1<<20 {
		r.Fail("load generator readings every %d s", steps)
		return
	}
	a.step = time.Duration(steps) * agentStep
}

// Resume lets the stretches of further readings begin in those that were read.
func (a *Agents) Resume() {
	for i := range a.pods {
		p := &a.pods[i]
		for k := range p.list {
			p.busy.add(countersOfAgent(&p.list[k]))
		}
	}
}

// keepAgent appends a reading, or replaces the last one if it is in the same cell of the grid.
func keepAgent(list []record.AgentUse, a record.AgentUse, step time.Duration) []record.AgentUse {
	last := len(list) - 1
	if last < 0 || list[last].At/int64(step) != a.At/int64(step) {
		return append(list, a)
	}
	before := &list[last]
	if a.RoundTrip == 0 || (before.RoundTrip > 0 && before.RoundTrip < a.RoundTrip) {
		a.RoundTrip = before.RoundTrip
	}
	a.Memory = max(a.Memory, list[last].Memory)
	a.Busiest = busier(a.Busiest, list[last].Busiest, cpu)
	a.MostThrottled = busier(a.MostThrottled, list[last].MostThrottled, throttled)
	list[last] = a
	return list
}

// findBusiestOfAgent sets the stretches that end with the reading.
func findBusiestOfAgent(a *record.AgentUse, before *recent) {
	stretch := before.add(countersOfAgent(a))
	a.Busiest = busier(stretch, record.Busy{}, cpu)
	a.MostThrottled = busier(stretch, record.Busy{}, throttled)
}

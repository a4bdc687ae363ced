package record

import "github.com/redquake/redquake/internal/record/codec"

// AgentUse is one reading of the load generator's process. Cumulative values count from the start
// of the process.
type AgentUse struct {
	At               int64   // nanoseconds since T
	Pod              int     // the pod's number
	CPUSeconds       float64 // user and system, cumulative
	CPULimit         float64 // cores, from the cgroup; 0 = no limit
	ThrottledSeconds float64 // time the cgroup throttled the process, cumulative
	// time its threads were ready to run and did not, cumulative over all of them; -1 = the kernel
	// does not count it
	WaitedSeconds float64
	// time the hypervisor took from it, cumulative; 0 also where that is not known
	StolenSeconds  float64
	GCPauseSeconds float64 // stop-the-world pauses, cumulative
	BusyThreads    int     // threads that send load; each can use at most one core; 0 = unknown
	// of a PING on an otherwise idle connection, nanoseconds; 0 = not measured
	RoundTrip int64
	// the shortest of some PINGs before the load, nanoseconds; 0 = not measured
	IdleRoundTrip int64
	Memory        int64 // resident bytes

	// Of a reading of a Series: the stretch with the highest CPU usage, and the one in which the
	// process was throttled most, of those that end with this reading or with one that was merged into
	// it.
	Busiest, MostThrottled Busy
}

// minAgentSize is the least length of an AgentUse: 6 numbers, 4 floats.
const minAgentSize = 6 + 4*8

func appendAgents(dst []byte, agents []AgentUse) []byte {
	return codec.AppendList(dst, agents, appendAgent)
}

func appendAgent(dst []byte, a *AgentUse) []byte {
	for _, v := range [...]int64{
		a.At, int64(a.Pod), int64(a.BusyThreads), a.RoundTrip,
		a.IdleRoundTrip, a.Memory,
	} {
		dst = codec.AppendInt(dst, v)
	}
	for _, p := range a.floats() {
		dst = codec.AppendFloat(dst, *p)
	}
	return dst
}

func readAgents(r *codec.Reader) []AgentUse {
	return codec.ReadList(r, minAgentSize, func(a *AgentUse) { readAgent(r, a) })
}

func readAgent(r *codec.Reader, a *AgentUse) {
	a.At, a.Pod, a.BusyThreads = r.Int(), int(r.Int()), int(r.Int())
	a.RoundTrip, a.IdleRoundTrip, a.Memory = r.Int(), r.Int(), r.Int()
	for _, p := range a.floats() {
		*p = r.Float()
	}
}

// floats lists the fields in the order of the encoding.
func (a *AgentUse) floats() [6]*float64 {
	return [...]*float64{
		&a.CPUSeconds, &a.CPULimit, &a.ThrottledSeconds, &a.GCPauseSeconds,
		&a.WaitedSeconds, &a.StolenSeconds,
	}
}

// AppendMergedAgents appends the readings of a series, which also have stretches.
func AppendMergedAgents(dst []byte, agents []AgentUse) []byte {
	return codec.AppendList(dst, agents, func(dst []byte, a *AgentUse) []byte {
		return appendBusy(appendBusy(appendAgent(dst, a), &a.Busiest, a.At), &a.MostThrottled, a.At)
	})
}

// ReadMergedAgents reads the output of AppendMergedAgents.
func ReadMergedAgents(r *codec.Reader) []AgentUse {
	return codec.ReadList(r, minAgentSize, func(a *AgentUse) {
		readAgent(r, a)
		a.Busiest, a.MostThrottled = readBusy(r, a.At), readBusy(r, a.At)
	})
}

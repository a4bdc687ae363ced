package record

import "github.com/redquake/redquake/internal/record/codec"

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

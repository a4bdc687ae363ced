package record

// minAgentSize is the least length of an AgentUse: 6 numbers, 4 floats.
const minAgentSize = 6 + 4*8

func appendAgents(dst []byte, agents []AgentUse) []byte { return appendList(dst, agents, appendAgent) }

func appendAgent(dst []byte, a *AgentUse) []byte {
	for _, v := range [...]int64{a.At, int64(a.Pod), int64(a.BusyThreads), a.RoundTrip, a.IdleRoundTrip, a.Memory} {
		dst = appendInt(dst, v)
	}
	for _, p := range a.floats() {
		dst = appendFloat(dst, *p)
	}
	return dst
}

func (r *reader) agents() []AgentUse { return readList(r, minAgentSize, r.agent) }

func (r *reader) agent(a *AgentUse) {
	a.At, a.Pod, a.BusyThreads = r.int(), int(r.int()), int(r.int())
	a.RoundTrip, a.IdleRoundTrip, a.Memory = r.int(), r.int(), r.int()
	for _, p := range a.floats() {
		*p = r.float()
	}
}

// floats lists the fields in the order of the encoding.
func (a *AgentUse) floats() [6]*float64 {
	return [...]*float64{&a.CPUSeconds, &a.CPULimit, &a.ThrottledSeconds, &a.GCPauseSeconds, &a.WaitedSeconds, &a.StolenSeconds}
}

// appendMergedAgents appends the readings of a series, which also have stretches.
func appendMergedAgents(dst []byte, agents []AgentUse) []byte {
	return appendList(dst, agents, func(dst []byte, a *AgentUse) []byte {
		return appendBusy(appendBusy(appendAgent(dst, a), &a.Busiest, a.At), &a.MostThrottled, a.At)
	})
}

func (r *reader) mergedAgents() []AgentUse {
	return readList(r, minAgentSize, func(a *AgentUse) {
		r.agent(a)
		a.Busiest, a.MostThrottled = r.busy(a.At), r.busy(a.At)
	})
}

package record

// minServerSize is the length of an empty Server: 9 texts, 25 numbers, 2 booleans, 2 floats, no event.
const minServerSize = 9 + 25 + 2 + 16 + 1

func appendServers(dst []byte, servers []Server) []byte {
	dst = appendUint(dst, uint64(len(servers)))
	for i := range servers {
		s := &servers[i]
		for _, p := range s.texts() {
			dst = appendText(dst, *p)
		}
		for _, p := range s.numbers() {
			dst = appendInt(dst, *p)
		}
		dst = appendBool(dst, s.Loading)
		dst = appendBool(dst, s.AOFEnabled)
		dst = appendFloat(dst, s.CPUSeconds)
		dst = appendFloat(dst, s.CPUMainThreadSeconds)
		dst = appendUint(dst, uint64(len(s.Latency)))
		for _, e := range s.Latency {
			dst = appendText(dst, e.Name)
			dst = appendInt(dst, e.Unix)
			dst = appendInt(dst, e.LatestMillis)
			dst = appendInt(dst, e.MaxMillis)
		}
	}
	return dst
}

func (r *reader) servers() []Server {
	n := r.count(minServerSize)
	if n == 0 {
		return nil
	}
	servers := make([]Server, n)
	for i := range servers {
		s := &servers[i]
		for _, p := range s.texts() {
			*p = r.text()
		}
		for _, p := range s.numbers() {
			*p = r.int()
		}
		s.Loading, s.AOFEnabled = r.bool(), r.bool()
		s.CPUSeconds, s.CPUMainThreadSeconds = r.float(), r.float()
		if n := r.count(4); n > 0 {
			s.Latency = make([]LatencyEvent, n)
			for k := range s.Latency {
				s.Latency[k] = LatencyEvent{Name: r.text(), Unix: r.int(), LatestMillis: r.int(), MaxMillis: r.int()}
			}
		}
	}
	return servers
}

// texts and numbers list the fields in the order of the encoding.
func (s *Server) texts() [9]*string {
	return [...]*string{&s.Address, &s.RunID, &s.Name, &s.Version, &s.Mode, &s.Role, &s.MaxMemoryPolicy, &s.AOFFsync, &s.SlowLog.Command}
}

func (s *Server) numbers() [25]*int64 {
	return [...]*int64{&s.At, &s.UptimeSeconds, &s.UsedMemory, &s.UsedMemoryRSS, &s.MaxMemory, &s.ConnectedClients,
		&s.RejectedConnections, &s.EvictedKeys, &s.ExpiredKeys, &s.CommandsProcessed, &s.AOFDelayedFsync,
		&s.BlockedClients, &s.MaxClients, &s.OOMErrors, &s.TotalReads, &s.TotalWrites, &s.IOThreadedReads, &s.IOThreadedWrites,
		&s.InstantaneousOps, &s.LatestForkMicros, &s.SlowLog.Total, &s.SlowLog.WorstMicros,
		&s.Shard, &s.NetInput, &s.NetOutput}
}

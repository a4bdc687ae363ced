package record

// minServerSize is the least length of a Server: 8 texts, 35 numbers, 2 booleans, 2 floats, no event and no slow command.
const minServerSize = 8 + 35 + 2 + 16 + 1 + 1

func appendServers(dst []byte, servers []Server) []byte {
	return appendList(dst, servers, appendServer)
}

func appendServer(dst []byte, s *Server) []byte {
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
	dst = appendList(dst, s.Latency, func(dst []byte, e *LatencyEvent) []byte {
		dst = appendText(dst, e.Name)
		dst = appendInt(dst, e.Unix)
		dst = appendInt(dst, e.LatestMillis)
		return appendInt(dst, e.MaxMillis)
	})
	return appendList(dst, s.SlowLog.Commands, func(dst []byte, c *SlowCommand) []byte {
		dst = appendText(dst, c.Command)
		dst = appendInt(dst, c.Count)
		dst = appendInt(dst, c.WorstMicros)
		return appendInt(dst, c.At-s.At)
	})
}

func (r *reader) servers() []Server { return readList(r, minServerSize, r.server) }

func (r *reader) server(s *Server) {
	for _, p := range s.texts() {
		*p = r.text()
	}
	for _, p := range s.numbers() {
		*p = r.int()
	}
	s.Loading, s.AOFEnabled = r.bool(), r.bool()
	s.CPUSeconds, s.CPUMainThreadSeconds = r.float(), r.float()
	s.Latency = readList(r, 4, func(e *LatencyEvent) {
		*e = LatencyEvent{Name: r.text(), Unix: r.int(), LatestMillis: r.int(), MaxMillis: r.int()}
	})
	s.SlowLog.Commands = readList(r, 4, func(c *SlowCommand) {
		*c = SlowCommand{Command: r.text(), Count: r.int(), WorstMicros: r.int(), At: s.At + r.int()}
	})
}

// texts and numbers list the fields in the order of the encoding.
func (s *Server) texts() [8]*string {
	return [...]*string{&s.Address, &s.RunID, &s.Name, &s.Version, &s.Mode, &s.Role, &s.MaxMemoryPolicy, &s.AOFFsync}
}

func (s *Server) numbers() [35]*int64 {
	return [...]*int64{&s.At, &s.UptimeSeconds, &s.UsedMemory, &s.UsedMemoryRSS, &s.MaxMemory, &s.ConnectedClients,
		&s.RejectedConnections, &s.EvictedKeys, &s.ExpiredKeys, &s.CommandsProcessed, &s.AOFDelayedFsync,
		&s.BlockedClients, &s.MaxClients, &s.OOMErrors, &s.TotalReads, &s.TotalWrites, &s.IOThreadedReads, &s.IOThreadedWrites,
		&s.InstantaneousOps, &s.LatestForkMicros, &s.SlowLog.Total,
		&s.Shard, &s.NetInput, &s.NetOutput, &s.EvictedClients, &s.BufferedClients,
		&s.AOFSize, &s.AOFFlushMicros, &s.MisconfErrors, &s.QueryingClients, &s.FullSyncs, &s.PartialSyncs, &s.Replicas, &s.SyncedReplicas, &s.PrimaryLink}
}

// appendMergedServers appends the readings of a series, which also have stretches.
func appendMergedServers(dst []byte, servers []Server) []byte {
	return appendList(dst, servers, func(dst []byte, s *Server) []byte {
		return appendBusy(appendBusy(appendServer(dst, s), &s.Busiest, s.At), &s.BusiestMainThread, s.At)
	})
}

func (r *reader) mergedServers() []Server {
	return readList(r, minServerSize, func(s *Server) {
		r.server(s)
		s.Busiest, s.BusiestMainThread = r.busy(s.At), r.busy(s.At)
	})
}

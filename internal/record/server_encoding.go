package record

import "github.com/redquake/redquake/internal/record/codec"

// minServerSize is the least length of a Server: 8 texts, 35 numbers, 2 booleans, 2 floats, no
// event and no slow command.
const minServerSize = 8 + 35 + 2 + 16 + 1 + 1

func appendServers(dst []byte, servers []Server) []byte {
	return codec.AppendList(dst, servers, appendServer)
}

func appendServer(dst []byte, s *Server) []byte {
	for _, p := range s.texts() {
		dst = codec.AppendText(dst, *p)
	}
	for _, p := range s.numbers() {
		dst = codec.AppendInt(dst, *p)
	}
	dst = codec.AppendBool(dst, s.Loading)
	dst = codec.AppendBool(dst, s.AOFEnabled)
	dst = codec.AppendFloat(dst, s.CPUSeconds)
	dst = codec.AppendFloat(dst, s.CPUMainThreadSeconds)
	dst = codec.AppendList(dst, s.Latency, func(dst []byte, e *LatencyEvent) []byte {
		dst = codec.AppendText(dst, e.Name)
		dst = codec.AppendInt(dst, e.Unix)
		dst = codec.AppendInt(dst, e.LatestMillis)
		return codec.AppendInt(dst, e.MaxMillis)
	})
	return codec.AppendList(dst, s.SlowLog.Commands, func(dst []byte, c *SlowCommand) []byte {
		dst = codec.AppendText(dst, c.Command)
		dst = codec.AppendInt(dst, c.Count)
		dst = codec.AppendInt(dst, c.WorstMicros)
		return codec.AppendInt(dst, c.At-s.At)
	})
}

func readServers(r *codec.Reader) []Server {
	return codec.ReadList(r, minServerSize, func(s *Server) { readServer(r, s) })
}

func readServer(r *codec.Reader, s *Server) {
	for _, p := range s.texts() {
		*p = r.Text()
	}
	for _, p := range s.numbers() {
		*p = r.Int()
	}
	s.Loading, s.AOFEnabled = r.Bool(), r.Bool()
	s.CPUSeconds, s.CPUMainThreadSeconds = r.Float(), r.Float()
	s.Latency = codec.ReadList(r, 4, func(e *LatencyEvent) {
		*e = LatencyEvent{
			Name:         r.Text(),
			Unix:         r.Int(),
			LatestMillis: r.Int(),
			MaxMillis:    r.Int(),
		}
	})
	s.SlowLog.Commands = codec.ReadList(r, 4, func(c *SlowCommand) {
		*c = SlowCommand{
			Command:     r.Text(),
			Count:       r.Int(),
			WorstMicros: r.Int(),
			At:          s.At + r.Int(),
		}
	})
}

// texts and numbers list the fields in the order of the encoding.
func (s *Server) texts() [8]*string {
	return [...]*string{
		&s.Address, &s.RunID, &s.Name, &s.Version, &s.Mode, &s.Role,
		&s.MaxMemoryPolicy, &s.AOFFsync,
	}
}

func (s *Server) numbers() [35]*int64 {
	return [...]*int64{
		&s.At, &s.UptimeSeconds, &s.UsedMemory, &s.UsedMemoryRSS, &s.MaxMemory,
		&s.ConnectedClients,
		&s.RejectedConnections, &s.EvictedKeys, &s.ExpiredKeys, &s.CommandsProcessed, &s.AOFDelayedFsync,
		&s.BlockedClients, &s.MaxClients, &s.OOMErrors, &s.TotalReads, &s.TotalWrites, &s.IOThreadedReads,
		&s.IOThreadedWrites,
		&s.InstantaneousOps, &s.LatestForkMicros, &s.SlowLog.Total,
		&s.Shard, &s.NetInput, &s.NetOutput, &s.EvictedClients, &s.BufferedClients,
		&s.AOFSize, &s.AOFFlushMicros, &s.MisconfErrors, &s.QueryingClients, &s.FullSyncs,
		&s.PartialSyncs, &s.Replicas, &s.SyncedReplicas, &s.PrimaryLink,
	}
}

// AppendMergedServers appends the readings of a series, which also have stretches.
func AppendMergedServers(dst []byte, servers []Server) []byte {
	return codec.AppendList(dst, servers, func(dst []byte, s *Server) []byte {
		return appendBusy(appendBusy(appendServer(dst, s), &s.Busiest, s.At), &s.BusiestMainThread, s.At)
	})
}

// ReadMergedServers reads the output of AppendMergedServers.
func ReadMergedServers(r *codec.Reader) []Server {
	return codec.ReadList(r, minServerSize, func(s *Server) {
		readServer(r, s)
		s.Busiest, s.BusiestMainThread = readBusy(r, s.At), readBusy(r, s.At)
	})
}

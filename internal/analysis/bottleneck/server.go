package bottleneck

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// server is the sum of one Redis server's readings; counters are differences within the steady
// part.
type server struct {
	address string
	timeline
	pairs int // of consecutive readings

	io      socketIO
	disk    disk
	memory  memory
	clients clients
	syncs   syncs
	slow    slowLog
}

// socketIO is how many reads and writes of connections a server made, and how many of them its I/O
// threads.
type socketIO struct{ reads, writes, threadedReads, threadedWrites int64 }

// memory is what a server evicted and refused for lack of memory.
type memory struct {
	evicted, oom counter
	used, limit  int64 // limit is maxmemory
	policy       string
}

// clients are the connections that a server refused and closed, and those that it had.
type clients struct {
	rejected, evicted counter
	// disconnected as they did not read (replicas, too), or as they sent too much at once
	buffered, querying counter
	connected, limit   int64 // limit is maxclients
	blocked            int   // readings
	mostBlocked        int64
}

// slowLog is how many commands were slow, and the slowest.
type slowLog struct {
	n       int64
	micros  int64
	command string
}

// add adds the differences between two readings of one process. Counters that decreased were reset:
// their values before the reset are unknown.
func (s *server) add(before, now *record.Server) {
	s.pairs++
	s.record(before.At, now.At, usage{
		cpu:      max(0, now.CPUSeconds-before.CPUSeconds),
		main:     max(0, now.CPUMainThreadSeconds-before.CPUMainThreadSeconds),
		commands: since(before.CommandsProcessed, now.CommandsProcessed),
	})
	over := time.Duration(now.At - before.At).Seconds()
	s.io.add(before, now)
	s.disk.add(before, now, over)
	s.memory.add(before, now, over)
	s.clients.add(before, now, over)
	s.syncs.add(before, now, over)
	s.slow.add(&before.SlowLog, &now.SlowLog)
}

// since is by how much a number grew.
func since(before, now int64) int64 {
	return max(0, now-before)
}

func (o *socketIO) add(before, now *record.Server) {
	o.reads += since(before.TotalReads, now.TotalReads)
	o.writes += since(before.TotalWrites, now.TotalWrites)
	o.threadedReads += since(before.IOThreadedReads, now.IOThreadedReads)
	o.threadedWrites += since(before.IOThreadedWrites, now.IOThreadedWrites)
}

func (m *memory) add(before, now *record.Server, over float64) {
	m.evicted.add(before.EvictedKeys, now.EvictedKeys, over)
	m.oom.add(before.OOMErrors, now.OOMErrors, over)
	m.used = max(m.used, now.UsedMemory)
	m.limit = now.MaxMemory
	m.policy = now.MaxMemoryPolicy
}

// String says how full the memory was.
func (m *memory) String() string {
	return fmt.Sprintf("%s of maxmemory %s, policy %s", bytes(m.used), bytes(m.limit), m.policy)
}

func (c *clients) add(before, now *record.Server, over float64) {
	c.rejected.add(before.RejectedConnections, now.RejectedConnections, over)
	c.evicted.add(before.EvictedClients, now.EvictedClients, over)
	c.buffered.add(before.BufferedClients, now.BufferedClients, over)
	c.querying.add(before.QueryingClients, now.QueryingClients, over)
	c.connected = max(c.connected, now.ConnectedClients)
	c.limit = now.MaxClients
	if now.BlockedClients > 0 {
		c.blocked++
		c.mostBlocked = max(c.mostBlocked, now.BlockedClients)
	}
}

func (l *slowLog) add(before, now *record.SlowLog) {
	if before.Total >= 0 { // -1 = unknown
		l.n += since(before.Total, now.Total)
	}
	if len(now.Commands) > 0 && now.Commands[0].WorstMicros > l.micros {
		l.micros, l.command = now.Commands[0].WorstMicros, now.Commands[0].Command
	}
}

// counter is how much a server's counter grew in the steady part.
type counter struct {
	n       int64
	pairs   int     // of consecutive readings between which it grew
	seconds float64 // between these
}

// add adds the difference between two readings. One that decreased was reset: its value before is
// unknown.
func (c *counter) add(before, now int64, seconds float64) {
	if now > before {
		c.n += now - before
		c.pairs++
		c.seconds += seconds
	}
}

// lasted reports whether a counter grew for so much of the time that it was no event. A single pair
// of readings does not tell how long it was, unless there is no other.
func (s *server) lasted(c *counter) bool {
	return c.pairs > 0 && (c.pairs > 1 || s.pairs == 1) && c.seconds >= lastingShare*s.total.seconds
}

// syncs is what the readings of a primary tell of the synchronizations of its replicas.
type syncs struct {
	full     counter // that it has started
	partial  int64
	replicas int64 // the most that were connected
	short    int   // readings in which not all that had been connected followed
	shard    int64
}

func (s *syncs) add(before, now *record.Server, over float64) {
	s.full.add(before.FullSyncs, now.FullSyncs, over)
	s.partial += max(0, now.PartialSyncs-before.PartialSyncs)
	s.replicas, s.shard = max(s.replicas, before.Replicas, now.Replicas), now.Shard
	if s.replicas > now.SyncedReplicas {
		s.short++
	}
}

// bufferedClients is how many clients were disconnected because of client-output-buffer-limit. A
// replica that was comes back for a synchronization, sooner or later.
func (s *server) bufferedClients() int64 {
	return max(0, s.clients.buffered.n-s.syncs.full.n-s.syncs.partial-s.syncs.replicas)
}

func (s *server) ioThreads() string {
	o := &s.io
	if o.threadedReads+o.threadedWrites == 0 {
		return ""
	}
	return fmt.Sprintf(
		"; I/O threads made %s of the reads and %s of the writes, the whole process used %s",
		percent(ratio(o.threadedReads, o.reads)), percent(ratio(o.threadedWrites, o.writes)),
		cores(s.total.cores()))
}

// text tells of the slow commands; "" = there were none.
func (l *slowLog) text() string {
	if l.n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d slow commands, the longest %s with %s", l.n, l.command,
		duration(time.Duration(l.micros)*time.Microsecond))
}

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
	pairs          int // of consecutive readings
	reads, writes  int64
	threadedReads  int64
	threadedWrites int64

	delayedFsync counter
	// of the readings between which the main thread waited for the disk for most of the time
	waiting      counter
	waited       float64 // seconds in which it did
	appended     counter // bytes, to the append-only file
	reportsFlush bool    // how long the main thread is in writes and fsyncs of it
	fsync        string
	diskEvents   int   // readings with a new event
	diskMillis   int64 // the sum of the longest of each of these
	diskEvent    string
	diskWorst    int64 // ms

	evicted, oom, misconf counter
	usedMemory, maxMemory int64
	policy                string

	rejected, out counter // connections rejected, clients evicted
	// clients disconnected as they did not read (replicas, too), or as they sent too much at once
	buffered, querying    counter
	connected, maxClients int64
	blocked               int // readings
	mostBlocked           int64

	syncs syncs

	slow        int64
	slowMicros  int64
	slowCommand string
}

// add adds the differences between two readings of one process. Counters that decreased were reset:
// their values before the reset are unknown.
func (s *server) add(before, now *record.Server) {
	since := func(a, b int64) int64 { return max(0, b-a) }
	s.pairs++
	s.record(before.At, now.At, usage{
		cpu:      max(0, now.CPUSeconds-before.CPUSeconds),
		main:     max(0, now.CPUMainThreadSeconds-before.CPUMainThreadSeconds),
		commands: since(before.CommandsProcessed, now.CommandsProcessed),
	})
	s.reads += since(before.TotalReads, now.TotalReads)
	s.writes += since(before.TotalWrites, now.TotalWrites)
	s.threadedReads += since(before.IOThreadedReads, now.IOThreadedReads)
	s.threadedWrites += since(before.IOThreadedWrites, now.IOThreadedWrites)
	over := time.Duration(now.At - before.At).Seconds()
	s.evicted.add(before.EvictedKeys, now.EvictedKeys, over)
	s.oom.add(before.OOMErrors, now.OOMErrors, over)
	s.misconf.add(before.MisconfErrors, now.MisconfErrors, over)
	s.usedMemory = max(s.usedMemory, now.UsedMemory)
	s.maxMemory = now.MaxMemory
	s.policy = now.MaxMemoryPolicy
	s.rejected.add(before.RejectedConnections, now.RejectedConnections, over)
	s.out.add(before.EvictedClients, now.EvictedClients, over)
	s.buffered.add(before.BufferedClients, now.BufferedClients, over)
	s.querying.add(before.QueryingClients, now.QueryingClients, over)
	s.connected = max(s.connected, now.ConnectedClients)
	s.maxClients = now.MaxClients
	if now.BlockedClients > 0 {
		s.blocked++
		s.mostBlocked = max(s.mostBlocked, now.BlockedClients)
	}
	if before.SlowLog.Total >= 0 { // -1 = unknown
		s.slow += since(before.SlowLog.Total, now.SlowLog.Total)
	}
	commands := now.SlowLog.Commands
	if len(commands) > 0 && commands[0].WorstMicros > s.slowMicros {
		s.slowMicros, s.slowCommand = commands[0].WorstMicros, commands[0].Command
	}
	s.addDisk(before, now, over)
	s.syncs.add(before, now, over)
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
	return max(0, s.buffered.n-s.syncs.full.n-s.syncs.partial-s.syncs.replicas)
}

func (s *server) ioThreads() string {
	if s.threadedReads+s.threadedWrites == 0 {
		return ""
	}
	return fmt.Sprintf(
		"; I/O threads made %s of the reads and %s of the writes, the whole process used %s",
		percent(ratio(s.threadedReads, s.reads)), percent(ratio(s.threadedWrites, s.writes)),
		cores(s.total.cores()))
}

func (s *server) slowest() string {
	if s.slow == 0 {
		return ""
	}
	return fmt.Sprintf("; %d slow commands, the longest %s with %s", s.slow, s.slowCommand,
		duration(time.Duration(s.slowMicros)*time.Microsecond))
}

package bottleneck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// disk is what a server tells of its disk.
type disk struct {
	misconf      counter // commands that it refused as it could not save its data
	delayedFsync counter
	// of the readings between which the main thread waited for the disk for most of the time
	waiting      counter
	waited       float64 // seconds in which it did
	appended     counter // bytes, to the append-only file
	reportsFlush bool    // how long the main thread is in writes and fsyncs of it
	fsync        string
	events       latencyEvents
}

// latencyEvents are the events of LATENCY that are time spent on the append-only file.
type latencyEvents struct {
	n           int    // readings with a new one
	millis      int64  // the sum of the longest of each of these
	worst       string // the name of the longest
	worstMillis int64
}

func (d *disk) add(before, now *record.Server, over float64) {
	d.misconf.add(before.MisconfErrors, now.MisconfErrors, over)
	d.delayedFsync.add(before.AOFDelayedFsync, now.AOFDelayedFsync, over)
	d.appended.add(before.AOFSize, now.AOFSize, over)
	d.fsync, d.reportsFlush = now.AOFFsync, now.AOFFlushMicros > 0
	if before.AOFFlushMicros > 0 && now.AOFFlushMicros > before.AOFFlushMicros {
		ran := usage{
			seconds: over,
			cpu:     now.CPUSeconds - before.CPUSeconds,
			main:    now.CPUMainThreadSeconds - before.CPUMainThreadSeconds,
		}
		// What it used of a CPU meanwhile was no wait; it may have used all of it elsewhere.
		waited := min(over, float64(now.AOFFlushMicros-before.AOFFlushMicros)/1e6) - over*ran.mainThread()
		d.waited += max(0, waited)
		if waited >= diskShare*over {
			d.waiting.add(0, 1, over)
		}
	}
	d.events.add(before.Latency, now.Latency)
}

func (l *latencyEvents) add(before, now []record.LatencyEvent) {
	longest := int64(-1) // of an event that is new; those of one write have several names
	for _, event := range now {
		if !ofDisk(event.Name) || !isNew(before, event) {
			continue
		}
		longest = max(longest, event.LatestMillis)
		if event.LatestMillis >= l.worstMillis {
			l.worstMillis, l.worst = event.LatestMillis, event.Name
		}
	}
	if longest >= 0 {
		l.n++
		l.millis += longest
	}
}

// ofDisk reports whether an event of LATENCY is time spent on the append-only file.
func ofDisk(event string) bool {
	return strings.HasPrefix(event, "aof-fsync") || strings.HasPrefix(event, "aof-write") ||
		event == "aof-fstat"
}

// isNew reports whether the event occurred again since the previous reading.
func isNew(before []record.LatencyEvent, event record.LatencyEvent) bool {
	return !slices.ContainsFunc(before, func(b record.LatencyEvent) bool {
		return b.Name == event.Name && b.Unix == event.Unix
	})
}

// fullDisk returns the evidence that a server waited for its disk for nearly all of the time: a
// faster load would only have waited longer.
func (e *evidence) fullDisk() string {
	for _, s := range e.servers {
		if s.disk.waited >= saturated*s.total.seconds && s.lasted(&s.disk.waiting) {
			return e.waitedForDisk(s)
		}
	}
	return ""
}

func (e *evidence) waitedForDisk(s *server) string {
	return fmt.Sprintf(
		"%s waited for its disk for %s of the time: its main thread was in writes and fsyncs of the append-only file and used no CPU then%s",
		e.name(s), percent(s.disk.waited/s.total.seconds), s.disk.withFsync())
}

func (d *disk) withFsync() string {
	if d.fsync == "" {
		return ""
	}
	return ", with appendfsync " + d.fsync
}

// disk returns the evidence that a server waited for its disk: what it reports of itself, or else
// what its clients saw.
func (e *evidence) disk() string {
	for _, s := range e.servers {
		switch {
		case s.lasted(&s.disk.waiting):
			return e.waitedForDisk(s)
		case s.lasted(&s.disk.delayedFsync):
			return fmt.Sprintf(
				"%s delayed a write %d times because the last fsync of its append-only file was still going "+
					"on (aof_delayed_fsync)", e.name(s), s.disk.delayedFsync.n)
		case s.hasDiskEvents():
			l := &s.disk.events
			return fmt.Sprintf("%s waited for its disk: latency event %s in %d of %d readings, up to %dms%s",
				e.name(s), l.worst, l.n, s.pairs, l.worstMillis, s.disk.withFsync())
		}
	}
	return e.unreportedFsyncs()
}

// hasDiskEvents reports whether latency events of the append-only file came again and again, and
// lasted for so much of the time that they were the limit. Of several between two readings only the
// last is known: of fsyncs before each reply, of a version that does not report their time, any
// length will do.
func (s *server) hasDiskEvents() bool {
	l := &s.disk.events
	if l.n == 0 || l.n == 1 && s.pairs > 1 ||
		float64(l.n) < eventShare*min(float64(s.pairs), s.total.seconds) {
		return false
	}
	return float64(l.millis)/1000 >= lastingShare*s.total.seconds ||
		l.worst == "aof-fsync-always" && !s.disk.reportsFlush
}

// unreportedFsyncs returns the evidence that a server which waits for an fsync before each reply to
// a write, but does not report how long, was slow with nothing to do. That it waited for a CPU
// instead is not excluded.
func (e *evidence) unreportedFsyncs() string {
	i := slices.IndexFunc(e.servers, func(s *server) bool {
		return s.disk.fsync == "always" &&
			!s.disk.reportsFlush && s.lasted(&s.disk.appended)
	})
	if i < 0 {
		return ""
	}
	waited := e.waitedWithoutWork(diskRatio, diskLeast)
	if waited == "" {
		return ""
	}
	return fmt.Sprintf(
		"%s waited for its disk or for a CPU: %s; with appendfsync always each write waits for an "+
			"fsync, whose time this version reports only if latency-monitor-threshold is set",
		e.name(e.servers[i]), waited)
}

// waitedWithoutWork returns the evidence that requests and PINGs took many times as long as the
// network while the main thread of Redis used little of a core; "" = they did not, or it is not
// known.
func (e *evidence) waitedWithoutWork(ratio float64, least time.Duration) string {
	s, used := e.busiest(usage.mainThread)
	if s == nil || used.mainThread() >= starvedUse || !e.in.Stamped || e.in.Redis != Direct ||
		len(e.pings) == 0 || e.idleRoundTrip == 0 {
		return ""
	}
	ping := time.Duration(slices.Sorted(slices.Values(e.pings))[len(e.pings)/2])
	p50 := e.median() - e.in.AddedLatency
	if least = max(least, time.Duration(ratio*float64(e.idleRoundTrip))); ping < least || p50 < least {
		return ""
	}
	return fmt.Sprintf(
		"half of the requests took %s and more from the send, and a PING %s instead of %s before the load, while its main thread was %s",
		duration(p50), duration(ping), duration(e.idleRoundTrip),
		s.compared(used, usage.mainThread, " busy"))
}

package bottleneck

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// refusals are the requests that were refused with one class of error.
type refusals struct {
	n    uint64
	held time.Duration // of the intervals with one
}

// refuse adds the refusals of an interval.
func (e *evidence) refuse(iv *record.Interval, step time.Duration) {
	var byClass [record.NumClasses]uint64
	outcomes := uint64(0)
	for k := range iv.Ops {
		op := &iv.Ops[k]
		outcomes += op.OK + op.Fail + op.Unknown
		for class, n := range op.Errors {
			byClass[class] += n
		}
	}
	if outcomes > 0 {
		e.served += step
	}
	for class, n := range byClass {
		if n > 0 {
			e.refused[class].n += n
			e.refused[class].held += step
		}
	}
}

// lasting reports whether requests were refused with a class of error for so much of the time in
// which there were requests that it was no event.
func (e *evidence) lasting(c record.Class) bool {
	r := e.refused[c]
	return r.n > 0 && r.held.Seconds() >= lastingShare*e.served.Seconds()
}

// Refused returns how many requests were refused with a class of error in the steady part of a run,
// and for how long, to an interval; both are 0 if that was so little of the time that it was an
// event.
func Refused(in Input, c record.Class) (n uint64, held time.Duration) {
	e := gather(in)
	if !e.lasting(c) {
		return 0, 0
	}
	return e.refused[c].n, e.refused[c].held
}

// outOfMemory returns the evidence that the kernel ended Redis at its memory limit, if requests
// failed for lack of a server for so much of the time that it was no event.
func (e *evidence) outOfMemory() string {
	for _, c := range []record.Class{
		record.ClassRefused, record.ClassReset, record.ClassTimeout,
		record.ClassLoading,
	} {
		if e.lasting(c) {
			return e.in.OutOfMemory
		}
	}
	return ""
}

// refusedMemory returns the evidence that Redis refused commands for lack of memory. How long it
// did so, the load's own errors tell best.
func (e *evidence) refusedMemory() string {
	seen := e.refused[record.ClassOOM]
	if seen.n > 0 && !e.lasting(record.ClassOOM) {
		return ""
	}
	for _, s := range e.servers {
		if s.memory.oom.n > 0 && (seen.n > 0 || s.lasted(&s.memory.oom)) {
			return fmt.Sprintf("%s refused %d commands with OOM, at %s", e.name(s), s.memory.oom.n,
				&s.memory)
		}
	}
	if seen.n > 0 {
		return fmt.Sprintf("%d requests were refused with OOM", seen.n)
	}
	return ""
}

// refusedDisk returns the evidence that Redis refused writes as it could not save its data. How
// long it did so, the load's own errors tell best.
func (e *evidence) refusedDisk() string {
	seen := e.refused[record.ClassMisconf]
	if e.lasting(record.ClassMisconf) {
		return fmt.Sprintf(
			"%d requests were refused with MISCONF, in %s of the time: Redis could not write its data to "+
				"its disk", seen.n, percent(seen.held.Seconds()/e.served.Seconds()))
	}
	for _, s := range e.servers {
		if seen.n == 0 && s.lasted(&s.disk.misconf) {
			return fmt.Sprintf(
				"%s refused %d commands with MISCONF: it could not write its data to its disk", e.name(s),
				s.disk.misconf.n)
		}
	}
	return ""
}

// cutOff returns the evidence that Redis rejected or closed connections of the load, whose own
// errors tell so.
func (e *evidence) cutOff() string {
	// a rejected connection has an answer of its own
	if e.lasting(record.ClassReset) || e.lasting(record.ClassOther) {
		return e.refusedClients()
	}
	return ""
}

// brokenConnections says that connections of the load broke for a reason that Redis does not
// report, for so much of the time that it was no event.
func (e *evidence) brokenConnections() string {
	if !e.lasting(record.ClassReset) || e.in.OutOfMemory != "" {
		return ""
	}
	r := e.refused[record.ClassReset]
	return fmt.Sprintf(
		"%d requests failed as their connections were closed, in %s of the time, which no counter of "+
			"Redis explains (before 7.2 it does not count clients beyond "+
			"client-output-buffer-limit or client-query-buffer-limit)", r.n,
		percent(r.held.Seconds()/e.served.Seconds()))
}

// refusedClients returns the evidence that Redis rejected connections, or closed them by its
// limits.
func (e *evidence) refusedClients() string {
	for _, s := range e.servers {
		switch {
		case s.lasted(&s.clients.rejected):
			return fmt.Sprintf(
				"%s rejected %d connections; up to %d clients were connected, maxclients is %d", e.name(s),
				s.clients.rejected.n, s.clients.connected, s.clients.limit)
		case s.lasted(&s.clients.evicted):
			return fmt.Sprintf(
				"%s disconnected %d clients, as all of them together exceeded maxmemory-clients", e.name(s),
				s.clients.evicted.n)
		case s.lasted(&s.clients.buffered) && s.bufferedClients() > 0:
			return fmt.Sprintf(
				"%s disconnected %d clients, as replies to them exceeded client-output-buffer-limit", e.name(s),
				s.bufferedClients())
		case s.lasted(&s.clients.querying):
			return fmt.Sprintf(
				"%s disconnected %d clients, as their requests exceeded client-query-buffer-limit", e.name(s),
				s.clients.querying.n)
		}
	}
	return ""
}

func (e *evidence) memory() string {
	if refused := e.refusedMemory(); refused != "" {
		return refused
	}
	for _, s := range e.servers {
		rate := float64(s.memory.evicted.n) / s.total.seconds
		if rate >= evictionsLeast && s.lasted(&s.memory.evicted) {
			return fmt.Sprintf("%s evicted %s keys/s, at %s", e.name(s), number(rate), &s.memory)
		}
	}
	return ""
}

func (e *evidence) clients() string {
	if refused := e.refusedClients(); refused != "" {
		return refused
	}
	for _, s := range e.servers {
		if s.pairs > 0 && float64(s.clients.blocked) >= blockedShare*float64(s.pairs) {
			return fmt.Sprintf(
				"%s had clients waiting in blocking commands in %d of %d readings, up to %d of them", e.name(s),
				s.clients.blocked, s.pairs, s.clients.mostBlocked)
		}
	}
	return ""
}

package adapter

import (
	"context"
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/adapter/wire"
)

// Perform performs a request: one command, or several as a pipeline, each the words of a command.
// It waits first until the adapter can take another request. With wanted the outcome of a success
// has the replies. The caller calls Noted once it has noted the outcome. If the session or ctx ends
// before the outcome is there, the error is the session's or ctx's, and the request may have been
// executed, unless begun is false.
func (s *Session) Perform(
	ctx context.Context, commands [][][]byte, wanted bool,
) (o wire.Outcome, begun bool, err error) {
	select {
	case s.slots <- struct{}{}:
	case <-s.ended:
		return o, false, s.why()
	case <-ctx.Done():
		return o, false, context.Cause(ctx)
	}
	c, err := s.begin(commands, wanted)
	if err != nil {
		<-s.slots
		return o, false, err
	}
	select {
	case o = <-c.done:
		return o, true, nil
	case <-s.ended:
	case <-ctx.Done():
	}
	if s.leave(c) { // it may have come at the same time
		return <-c.done, true, nil
	}
	if ctx.Err() != nil {
		return o, true, context.Cause(ctx)
	}
	return o, true, s.why()
}

// leave gives up waiting for an outcome; it returns true if that has been delivered.
func (s *Session) leave(c *call) (delivered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.left = true
	return len(c.done) > 0
}

// why is why the session ended.
func (s *Session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// begin hands a request over to the writer.
func (s *Session) begin(commands [][][]byte, wanted bool) (*call, error) {
	flags := 0
	if wanted {
		flags = wire.Wanted
	}
	size := 32
	for _, words := range commands {
		for _, word := range words {
			size += 8 + len(word)
		}
	}
	if !wire.Fits(size) {
		return nil, fmt.Errorf("a request of %d bytes is too large for an adapter", size)
	}
	c := &call{wanted: wanted, done: make(chan wire.Outcome, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.last++
	c.since = s.now()
	s.calls[s.last] = c
	s.out.Add(func(b []byte) []byte { return wire.AppendRequest(b, s.last, flags, commands) })
	s.signal()
	return c, nil
}

// signal wakes the writer.
func (s *Session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write sends pings and requests as they come, until the session ends.
func (s *Session) write() {
	spare := wire.Batch{Name: wire.NameRequests}
	for {
		select {
		case <-s.wake:
		case <-s.ended:
			return
		}
		s.mu.Lock()
		s.out, spare = spare, s.out
		pinged, ping := s.pinged, s.pingDue
		s.pingDue = false
		s.mu.Unlock()
		var err error
		if ping {
			err = wire.Write(s.conn, wire.AppendPing(nil, pinged))
		}
		if err == nil {
			err = spare.Send(s.conn)
		}
		if err != nil {
			s.fail(s.failure(closedConnection, nil))
			return
		}
	}
}

// ping asks the adapter again and again whether it runs.
func (s *Session) ping() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	// looks without an answer: time in which this process itself did not run does not count
	silent := 0
	for {
		select {
		case <-ticker.C:
		case <-s.ended:
			return
		}
		s.mu.Lock()
		since := s.pinged
		if since == 0 {
			s.pinged, s.pingDue = s.now(), true
			s.signal()
			silent = 0
		}
		s.mu.Unlock()
		silent++
		if silent > int(failAfter/pingEvery) {
			s.noteStall(since, s.now())
			s.fail(s.failure(fmt.Sprintf("stood still: no answer to a ping for %s", failAfter), nil))
			return
		}
	}
}

// noteStall reports a period without an answer if it is long.
func (s *Session) noteStall(from, to int64) {
	if s.stalled != nil && to-from >= int64(stallAfter) {
		s.stalled(from, to)
	}
}

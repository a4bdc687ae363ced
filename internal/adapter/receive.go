package adapter

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redquake/redquake/internal/adapter/wire"
)

// read takes what the adapter sends, until the session ends.
func (s *Session) read() {
	for {
		name, fields, err := s.reader.Next()
		var broken *net.OpError
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken):
			s.fail(s.failure(closedConnection, nil))
			return
		case err != nil:
			s.fail(s.failure("sent what is no message", err))
			return
		}
		now := s.now()
		switch name {
		case wire.NameOutcomes:
			err = fields.Outcomes(func(o *wire.Outcome) error { return s.settle(o, now) })
		case wire.NamePong:
			err = s.pong(fields, now)
		default:
			err = errors.New("it is not one that is expected now")
		}
		if err != nil {
			s.fail(s.failure(fmt.Sprintf("sent a message %q that is wrong", name), err))
			return
		}
	}
}

// settle ends a request with its outcome, which arrived before now.
func (s *Session) settle(o *wire.Outcome, now int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[o.ID]
	switch {
	case c == nil:
		return fmt.Errorf("an outcome for request %d, which is not in flight", o.ID)
	case o.Sent < c.since:
		return fmt.Errorf(
			"an outcome that was sent %s before its request was handed over",
			time.Duration(c.since-o.Sent),
		)
	case o.Done < o.Sent:
		return fmt.Errorf(
			"an outcome that was done %s before it was sent", time.Duration(o.Sent-o.Done),
		)
	case o.Done > now:
		return fmt.Errorf(
			"an outcome that was done %s after it was received", time.Duration(o.Done-now),
		)
	case o.Replies != nil && !(c.wanted && o.Class.Succeeded()):
		return errors.New("an outcome with replies that nobody wanted")
	case o.Replies == nil && c.wanted && o.Class.Succeeded():
		return errors.New("an outcome without the replies that were wanted")
	}
	delete(s.calls, o.ID)
	s.heard = max(s.heard, o.Done)
	if !c.left {
		s.delivered[o.ID] = o.Done
	}
	<-s.slots
	c.done <- *o
	return nil
}

// pong takes the answer to the ping that is under way.
func (s *Session) pong(fields *wire.Fields, now int64) error {
	p, err := fields.Pong()
	if err != nil {
		return err
	}
	s.mu.Lock()
	since := s.pinged
	err = s.accept(&p, now)
	s.mu.Unlock()
	if err == nil {
		s.noteStall(since, now)
	}
	return err
}

// accept checks the answer to a ping that arrived before now; the caller holds the lock.
func (s *Session) accept(p *wire.Pong, now int64) error {
	switch {
	case s.pinged == 0 || s.pingDue || p.Time != s.pinged:
		return errors.New("an answer to a ping that was not sent")
	case p.Now < s.pinged || p.Now > now:
		return fmt.Errorf(
			"its clock is not that of this system: it read %d ns between %d and %d ns",
			p.Now, s.pinged, now,
		)
	case p.CPU < 0 || p.Memory < 0:
		return errors.New("a negative use of CPU or memory")
	}
	s.pinged = 0
	s.heard = max(s.heard, p.Now)
	s.usage = Usage{CPU: time.Duration(p.CPU), Memory: p.Memory}
	return nil
}

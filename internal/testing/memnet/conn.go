package memnet

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// stream is one direction of a connection. The network's mutex guards it.
type stream struct {
	data, held   []byte
	arrived      time.Time // of the last byte of data
	end, heldEnd error     // io.EOF or errReset, for the reader behind the data
	changed      signal
}

// release delivers the data that was held.
func (s *stream) release() {
	if len(s.held) > 0 {
		s.arrived = time.Now()
	}
	s.data, s.held = append(s.data, s.held...), nil
	if s.end == nil {
		s.end, s.heldEnd = s.heldEnd, nil
	}
	s.changed.send()
}

// reset ends the stream at once; what was not read is lost.
func (s *stream) reset() {
	s.data, s.held, s.heldEnd = nil, nil, nil
	s.end = errReset
	s.changed.send()
}

// conn is one end of a connection.
type conn struct {
	network         *Network
	of              *endpoint
	in, out         *stream
	local, remote   addr
	counted         *conn // the accepting end, which the endpoint counts
	closed          bool
	readBy, writeBy time.Time
}

func (c *conn) Read(p []byte) (int, error) {
	for {
		n, wait, deadline, err := c.take(p)
		if wait == nil {
			return n, err
		}
		if deadline.IsZero() {
			<-wait
			continue
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-wait:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take reads available data; if there is none it returns the channel to wait on, and the deadline.
func (c *conn) take(p []byte) (n int, wait <-chan struct{}, deadline time.Time, err error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	switch {
	case c.closed:
		return 0, nil, deadline, c.failed("read", net.ErrClosed)
	case passed(c.readBy):
		return 0, nil, deadline, c.failed("read", os.ErrDeadlineExceeded)
	case len(c.in.data) > 0 || len(p) == 0:
		n = copy(p, c.in.data)
		if c.in.data = c.in.data[n:]; len(c.in.data) == 0 {
			c.in.data = nil
		}
		return n, nil, deadline, nil
	case c.in.end == io.EOF: //nolint:errorlint // its own mark, never wrapped
		return 0, nil, deadline, io.EOF
	case c.in.end != nil:
		return 0, nil, deadline, c.failed("read", os.NewSyscallError("read", syscall.ECONNRESET))
	}
	return 0, c.in.changed.wait(), c.readBy, nil
}

// Write takes all of p at once.
func (c *conn) Write(p []byte) (int, error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	switch {
	case c.closed:
		return 0, c.failed("write", net.ErrClosed)
	case passed(c.writeBy):
		return 0, c.failed("write", os.ErrDeadlineExceeded)
	case c.in.end != nil:
		return 0, c.failed("write", os.NewSyscallError("write", syscall.EPIPE))
	}
	if c.of.holds() {
		c.out.held = append(c.out.held, p...)
	} else {
		c.out.data = append(c.out.data, p...)
		c.out.arrived = time.Now()
		c.out.changed.send()
	}
	return len(p), nil
}

// Stamp returns when the last byte that can be read arrived, as a kernel tells it: by the wall clock in nanoseconds; 0
// before the first.
func (c *conn) Stamp() int64 {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.in.arrived.IsZero() {
		return 0
	}
	return c.in.arrived.UnixNano()
}

// Ended reports whether the other end has closed the connection, or it was reset: what was sent before may be unread.
func (c *conn) Ended() bool {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	return c.closed || c.in.end != nil
}

func passed(deadline time.Time) bool {
	return !deadline.IsZero() && !time.Now().Before(deadline)
}

// Close ends both directions: the other end reads what was written, then io.EOF.
func (c *conn) Close() error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return c.failed("close", net.ErrClosed)
	}
	c.closed = true
	c.out.finish(io.EOF, c.of.holds())
	c.in.changed.send() // wakes a waiting Read of this end
	if c.in.end != nil || c.in.heldEnd != nil {
		delete(c.of.conns, c.counted)
	}
	return nil
}

// finish ends the stream, after the held data if there is any.
func (s *stream) finish(end error, holds bool) {
	switch {
	case s.end != nil || s.heldEnd != nil:
	case holds:
		s.heldEnd = end
	default:
		s.end = end
	}
	s.changed.send()
}

func (c *conn) LocalAddr() net.Addr {
	return c.local
}

func (c *conn) RemoteAddr() net.Addr {
	return c.remote
}

func (c *conn) SetDeadline(t time.Time) error {
	return c.limit(&t, &t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.limit(&t, nil)
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.limit(nil, &t)
}

func (c *conn) limit(read, write *time.Time) error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return c.failed("set", net.ErrClosed)
	}
	if read != nil {
		c.readBy = *read
		c.in.changed.send()
	}
	if write != nil {
		c.writeBy = *write
	}
	return nil
}

func (c *conn) failed(op string, err error) error {
	return &net.OpError{
		Op:     op,
		Net:    "tcp",
		Source: c.local,
		Addr:   c.remote,
		Err:    err,
	}
}

package agenttest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// newPipe returns the two ends of a connection in memory. Unlike net.Pipe it buffers, as sockets do: both ends may write at once. A write never waits.
func newPipe(client, server memoryAddress) (clientEnd, serverEnd net.Conn) {
	up, down := newStream(), newStream()
	return &pipeEnd{in: down, out: up, local: client, remote: server}, &pipeEnd{in: up, out: down, local: server, remote: client}
}

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	changed  sync.Cond
	data     []byte
	end      error // of reading, once data is empty
	rejects  error // of writing
	deadline time.Time
	alarm    *time.Timer
}

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.end == net.ErrClosed: //nolint:errorlint // it is the value set here
			return 0, s.end
		case !s.deadline.IsZero() && !time.Now().Before(s.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(s.data) > 0:
			n := copy(b, s.data)
			s.data = s.data[n:]
			return n, nil
		case s.end != nil:
			return 0, s.end
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rejects != nil {
		return 0, s.rejects
	}
	s.data = append(s.data, b...)
	s.changed.Broadcast()
	return len(b), nil
}

// close ends the stream for its reader and its writer; the first errors stay. drop discards what was not read yet.
func (s *stream) close(end, rejects error, drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = end
	}
	if s.rejects == nil {
		s.rejects = rejects
	}
	if drop {
		s.data = nil
	}
	if s.alarm != nil && end == net.ErrClosed { //nolint:errorlint // it is the value given
		s.alarm.Stop()
	}
	s.changed.Broadcast()
}

func (s *stream) setDeadline(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarm != nil {
		s.alarm.Stop()
	}
	s.deadline = at
	if !at.IsZero() {
		s.alarm = time.AfterFunc(time.Until(at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
	}
	s.changed.Broadcast()
}

// pipeEnd is one end of a connection.
type pipeEnd struct {
	in, out       *stream
	local, remote memoryAddress
}

func (e *pipeEnd) Read(b []byte) (int, error)  { return e.in.read(b) }
func (e *pipeEnd) Write(b []byte) (int, error) { return e.out.write(b) }

// Close lets the other end read what was written.
func (e *pipeEnd) Close() error {
	e.in.close(net.ErrClosed, syscall.EPIPE, true)
	e.out.close(io.EOF, net.ErrClosed, false)
	return nil
}

// reset breaks the connection as the end of a process may: what is on its way is lost.
func (e *pipeEnd) reset() {
	e.in.close(net.ErrClosed, syscall.ECONNRESET, true)
	e.out.close(syscall.ECONNRESET, net.ErrClosed, true)
}

func (e *pipeEnd) LocalAddr() net.Addr                { return e.local }
func (e *pipeEnd) RemoteAddr() net.Addr               { return e.remote }
func (e *pipeEnd) SetReadDeadline(at time.Time) error { e.in.setDeadline(at); return nil }
func (*pipeEnd) SetWriteDeadline(time.Time) error     { return nil }
func (e *pipeEnd) SetDeadline(at time.Time) error     { return e.SetReadDeadline(at) }

// Package adapter performs requests through the client libraries that applications use. Each library
// is driven by an adapter, a program of its own that speaks the protocol of clients/PROTOCOL.md; this
// package is the agent's side of it. It trusts no adapter: one that lies, floods, stands still or
// dies ends the session with a Failure that says what it did.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/adapter/wire"
)

// The limits of time of the protocol.
const (
	helloWithin   = 5 * time.Minute
	connectWithin = 90 * time.Second // a minute for the adapter's own limit, and some for its word
	pingEvery     = 250 * time.Millisecond
	heldBack      = 5 * time.Millisecond // an outcome, at most
	stallAfter    = 10 * time.Second
	failAfter     = 30 * time.Second
)

// Failure is why a session ended before it was closed.
type Failure struct {
	Driver string // empty before it said hello
	What   string // continues "the adapter "
	Err    error  // nil, or the cause
}

// closedConnection is what an adapter did that has exited, too.
const closedConnection = "has closed its connection"

// Error is a sentence about the adapter.
func (f *Failure) Error() string {
	text := "the adapter " + f.What
	if f.Driver != "" {
		text = "the adapter of driver " + f.Driver + " " + f.What
	}
	if f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error {
	return f.Err
}

// Usage is what an adapter has used so far, as it says.
type Usage struct {
	CPU    time.Duration
	Memory int64 // resident, bytes
}

// Session is a conversation with an adapter. All methods are safe for concurrent use after Connect
// has succeeded; before that only one goroutine may use it.
type Session struct {
	Hello wire.Hello
	Ready wire.Ready // set by Connect

	conn    net.Conn
	reader  *wire.Reader
	now     func() int64
	stalled func(from, to int64)
	slots   chan struct{} // one for each request in flight
	wake    chan struct{} // of the writer
	ended   chan struct{} // closed at the end of the session
	group   sync.WaitGroup

	mu      sync.Mutex
	calls   map[uint64]*call
	out     wire.Batch
	last    uint64 // id
	pinged  int64  // when the ping that has no answer yet was due; 0 = none
	pingDue bool   // it has not been written yet
	usage   Usage
	heard   int64 // the latest instant that the adapter has told of
	// when those requests had ended whose outcomes have been delivered and not yet noted, by id
	delivered map[uint64]int64
	err       error // why it ended
}

// call is a request in flight.
type call struct {
	since  int64 // when it was handed over
	wanted bool
	left   bool              // nobody waits for it any more
	done   chan wire.Outcome // has room for it
}

// Options are what a session needs beside its connection.
type Options struct {
	// Driver is the one that the adapter must have.
	Driver string
	// Now is the clock that adapters tell the time by, nanoseconds.
	Now func() int64
	// Stalled is called with each period of 10 s or more in which the adapter answered no ping.
	Stalled func(from, to int64)
}

// Open waits until the adapter at the other end of conn has said hello. Close closes conn, also
// after an error of Open. Errors are *Failure, or ctx's.
func Open(ctx context.Context, conn net.Conn, o Options) (*Session, error) {
	s := &Session{
		conn:    conn,
		reader:  wire.NewReader(conn),
		now:     o.Now,
		stalled: o.Stalled,
		wake:    make(chan struct{}, 1),
		ended:   make(chan struct{}),
		calls:   map[uint64]*call{},

		delivered: map[uint64]int64{},
	}
	s.out.Name = wire.NameRequests
	fields, name, err := s.answer(ctx, helloWithin)
	if err != nil {
		return nil, err
	}
	if name != wire.NameHello {
		return nil, s.failure("sent "+name+" instead of hello", nil)
	}
	if s.Hello, err = fields.Hello(); err != nil {
		return nil, s.failure("sent a hello that is wrong", err)
	}
	if s.Hello.Driver != o.Driver {
		return nil, s.failure("is not that of driver "+o.Driver, nil)
	}
	return s, nil
}

// Connect has the adapter connect to Redis. If the adapter refuses, the error is a *wire.Refusal,
// and Connect may be called again; the other errors are *Failure, ctx's, and about options that
// cannot be sent.
func (s *Session) Connect(ctx context.Context, settings wire.Settings) error {
	message, err := settings.Append(nil)
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	if len(message) > wire.MaxMessage {
		return fmt.Errorf("options: %d bytes are too many", len(message))
	}
	if err := s.say(ctx, message); err != nil {
		return err
	}
	fields, name, err := s.answer(ctx, connectWithin)
	if err != nil {
		return err
	}
	switch name {
	case wire.NameRefused:
		refusal, err := fields.Refused()
		if err != nil {
			return s.failure("sent a refusal that is wrong", err)
		}
		return refusal
	case wire.NameReady:
		if s.Ready, err = fields.Ready(settings.InFlight); err != nil {
			return s.failure("sent a ready that is wrong", err)
		}
	default:
		return s.failure("sent "+name+" instead of ready or refused", nil)
	}
	s.heard = s.now()
	s.slots = make(chan struct{}, s.Ready.Capacity)
	s.group.Go(s.read)
	s.group.Go(s.write)
	s.group.Go(s.ping)
	return nil
}

// say sends one message before the session has begun.
func (s *Session) say(ctx context.Context, message []byte) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(connectWithin))
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetWriteDeadline(time.Unix(1, 0)) })
	err := wire.Write(s.conn, message)
	if !stop() {
		return context.Cause(ctx)
	}
	_ = s.conn.SetWriteDeadline(time.Time{})
	if err != nil {
		return s.failure(closedConnection, err)
	}
	return nil
}

// answer reads one message before the session has begun.
func (s *Session) answer(
	ctx context.Context, within time.Duration,
) (*wire.Fields, string, error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(within))
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })
	name, fields, err := s.reader.Next()
	if !stop() {
		return nil, "", context.Cause(ctx)
	}
	_ = s.conn.SetReadDeadline(time.Time{})
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		return nil, "", s.failure(fmt.Sprintf("said nothing for %s", within), nil)
	case errors.Is(err, io.EOF):
		return nil, "", s.failure(closedConnection, nil)
	case err != nil:
		return nil, "", s.failure("sent what is no message", err)
	}
	return fields, name, nil
}

func (s *Session) failure(what string, err error) *Failure {
	return &Failure{Driver: s.Hello.Driver, What: what, Err: err}
}

// fail ends the session.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	close(s.ended)
	_ = s.conn.Close()
}

// errClosed is the end of a session that was closed.
var errClosed = errors.New("the session is closed")

// Close ends the session, and with it the adapter.
func (s *Session) Close() {
	s.fail(errClosed)
	s.group.Wait()
}

// Ended is closed when the session has ended.
func (s *Session) Ended() <-chan struct{} {
	return s.ended
}

// Err is why the session ended by itself: a *Failure; nil if it has not, or was closed.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, errClosed) {
		return nil
	}
	return s.err
}

// Settled is the instant up to which all outcomes have been noted, by the clock of the adapter: a
// later one can be under way.
func (s *Session) Settled() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	settled := s.heard - int64(heldBack)
	for _, done := range s.delivered {
		settled = min(settled, done)
	}
	return settled
}

// Noted says that the caller has noted an outcome that Perform has returned.
func (s *Session) Noted(o *wire.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.delivered, o.ID)
}

// Capacity is how many requests the adapter takes at a time.
func (s *Session) Capacity() int {
	return s.Ready.Capacity
}

// Usage is what the adapter had used when it last answered a ping.
func (s *Session) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

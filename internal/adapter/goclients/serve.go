// Package goclients is the adapter of client libraries in Go, which runs in the process of the load
// agent. It is the other side of the protocol in clients/PROTOCOL.md, as the adapters in other
// languages are: nothing but its messages is exchanged with the agent.
package goclients

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/adapter/wire"
)

// Options are what the libraries get beside the settings.
type Options struct {
	// Now is the clock of the agent, nanoseconds.
	Now func() int64
	// Dial replaces the libraries' own way to open a connection, without TLS; nil = their own.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// library is a client of a library that has been created.
type library interface {
	// perform performs the commands of a request, several as a pipeline. Replies are nil, int64,
	// float64, bool, []byte and []any, and error for an error reply.
	perform(ctx context.Context, commands [][][]byte) ([]any, error)
	// reply is the text of the error reply within an error; "" if there is none.
	reply(err error) string
	// classify returns what an error of perform means, as far as the library tells.
	classify(err error) wire.OutcomeClass
	// options are the options in force.
	options() map[string]string
	close()
}

// driver creates clients of a library.
type driver struct {
	module  string // the Go module
	connect func(s *wire.Settings, o Options, seen *presence) (library, *wire.Refusal)
}

var drivers = map[string]driver{
	"GoRedis": {"github.com/redis/go-redis/v9", connectGoRedis},
	"Rueidis": {"github.com/redis/rueidis", connectRueidis},
}

// Drivers returns the names of the drivers.
func Drivers() []string {
	return slices.Sorted(maps.Keys(drivers))
}

// Serve speaks the adapter's side of the protocol on conn until it ends, and closes it. name is one
// of Drivers. The error is nil if the agent has closed the connection. Requests end with ctx.
func Serve(ctx context.Context, conn net.Conn, name string, o Options) error {
	defer conn.Close()
	d, ok := drivers[name]
	if !ok {
		return fmt.Errorf("there is no driver %q in Go", name)
	}
	s := &server{conn: conn, reader: wire.NewReader(conn), o: o, wake: make(chan struct{}, 1)}
	s.out.Name = wire.NameOutcomes
	err := s.serve(ctx, name, d)
	var broken *net.OpError
	if errors.As(err, &broken) || isEnd(err) {
		return nil
	}
	return err
}

// server is one conversation with an agent.
type server struct {
	conn   net.Conn
	reader *wire.Reader
	o      Options
	client library
	seen   presence
	wake   chan struct{} // of the writer

	mu   sync.Mutex
	out  wire.Batch
	pong []byte // nil = none is due
}

func (s *server) serve(ctx context.Context, name string, d driver) error {
	hello := wire.Hello{
		Version:        wire.Version,
		Driver:         name,
		Library:        d.module,
		LibraryVersion: versionOf(d.module),
		Runtime:        "Go " + runtime.Version()[len("go"):],
	}
	if err := wire.Write(s.conn, hello.Append(nil)); err != nil {
		return err
	}
	if err := s.connect(ctx, d); err != nil {
		return err
	}
	defer s.client.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var writer sync.WaitGroup
	writer.Go(func() { s.write(ctx) })
	defer writer.Wait()
	defer cancel()
	for {
		message, fields, err := s.reader.Next()
		if err != nil {
			return err
		}
		switch message {
		case wire.NameRequests:
			err = fields.Requests(func(r wire.Request) {
				r.Commands = copied(r.Commands)
				go s.perform(ctx, r)
			})
		case wire.NamePing:
			err = s.answer(fields)
		default:
			err = fmt.Errorf("a message %q", message)
		}
		if err != nil {
			return err
		}
	}
}

// connect answers the messages connect until a client is ready.
func (s *server) connect(ctx context.Context, d driver) error {
	for {
		message, fields, err := s.reader.Next()
		if err != nil {
			return err
		}
		if message != wire.NameConnect {
			return fmt.Errorf("a message %q instead of connect", message)
		}
		settings, err := fields.Connect()
		if err != nil {
			return err
		}
		refusal := s.open(ctx, d, &settings)
		if refusal == nil {
			ready := wire.Ready{Capacity: settings.InFlight, Options: bounded(s.client.options())}
			return wire.Write(s.conn, ready.Append(nil))
		}
		refusal.Field, refusal.Message = cut(refusal.Field, 128), cut(refusal.Message, wire.MaxText)
		if err := wire.Write(s.conn, refusal.Append(nil)); err != nil {
			return err
		}
	}
}

// connectWithin bounds what a library does until it is ready.
const connectWithin = time.Minute

// open creates the client and tries it with a PING.
func (s *server) open(
	ctx context.Context, d driver, settings *wire.Settings,
) (refused *wire.Refusal) {
	defer func() { // some options make a constructor panic
		if r := recover(); r != nil {
			refused = invalid("options", fmt.Sprint(r))
		}
	}()
	client, refusal := d.connect(settings, s.o, &s.seen)
	if refusal != nil {
		return refusal
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	replies, err := client.perform(ctx, [][][]byte{{[]byte("PING")}})
	if err == nil {
		err = failed(replies)
	}
	if err != nil {
		client.close()
		return refusalOf(wordsOf(client, err))
	}
	s.client = client
	return nil
}

// perform performs a request and notes its outcome.
func (s *server) perform(ctx context.Context, r wire.Request) {
	before := s.seen.look()
	o := wire.Outcome{ID: r.ID, Sent: s.o.Now()}
	replies, err := s.client.perform(ctx, r.Commands)
	o.Done = s.o.Now()
	if err == nil {
		err = failed(replies)
	}
	switch {
	case err != nil:
		o.Class, o.Text = s.client.classify(err), cut(wordsOf(s.client, err), wire.MaxText)
		if o.Class != wire.ClassReply && s.seen.absent(before) {
			o.Class = wire.ClassRefused
		}
	case len(replies) == 1 && replies[0] == nil:
		o.Class = wire.ClassNil
	default:
		o.Class = wire.ClassOK
	}
	if err != nil || r.Flags&wire.Wanted == 0 {
		replies = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Add(func(b []byte) []byte {
		appended, err := o.Append(b, replies)
		if err != nil || !wire.Fits(len(appended)-len(b)) {
			o.Class, o.Text = wire.ClassOther, "the reply is too large or of an unknown type"
			appended, _ = o.Append(b, nil)
		}
		return appended
	})
	s.signal()
}

// answer has the writer answer a ping.
func (s *server) answer(fields *wire.Fields) error {
	at, err := fields.Ping()
	if err != nil {
		return err
	}
	p := wire.Pong{Time: at, Now: s.o.Now()}
	p.CPU, p.Memory = used()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pong = p.Append(nil)
	s.signal()
	return nil
}

func (s *server) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write sends pongs and outcomes as they come, until ctx ends or the agent has gone.
func (s *server) write(ctx context.Context) {
	spare := wire.Batch{Name: wire.NameOutcomes}
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		s.out, spare = spare, s.out
		pong := s.pong
		s.pong = nil
		s.mu.Unlock()
		var err error
		if pong != nil {
			err = wire.Write(s.conn, pong)
		}
		if err == nil {
			err = spare.Send(s.conn)
		}
		if err != nil {
			return // the reader sees it, too
		}
	}
}

// wordsOf is the text of an error: of an error reply its own, without what the library puts before.
func wordsOf(client library, err error) string {
	if reply := client.reply(err); reply != "" {
		return reply
	}
	return err.Error()
}

// failed returns the first error among replies.
func failed(replies []any) error {
	for _, reply := range replies {
		if err, ok := reply.(error); ok {
			return err
		}
	}
	return nil
}

// copied copies commands out of the reader's buffer.
func copied(commands [][][]byte) [][][]byte {
	for _, words := range commands {
		for i, word := range words {
			words[i] = slices.Clone(word)
		}
	}
	return commands
}

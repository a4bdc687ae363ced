package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Conn is a connection to one server, for one goroutine at a time. It is dialled on first use, and
// again on the next use after it broke, even if it broke while idle. Commands are never sent twice.
type Conn struct {
	timeout time.Duration
	dial    func(ctx context.Context) (net.Conn, error)
	wire    *wire // nil = none
	remote  string
}

// NewConn returns a connection that is not dialled yet. timeout bounds each exchange in addition to
// its ctx; 0 = ctx only. dial must bound itself.
func NewConn(timeout time.Duration, dial func(ctx context.Context) (net.Conn, error)) *Conn {
	return &Conn{timeout: timeout, dial: dial}
}

// RemoteAddr returns the last dialled address; "" before.
func (c *Conn) RemoteAddr() string {
	return c.remote
}

// Info reads INFO, or some sections of it.
func (c *Conn) Info(ctx context.Context, sections ...string) (Info, error) {
	v, err := c.Do(ctx, append([]string{"INFO"}, sections...)...)
	if err != nil {
		return nil, fmt.Errorf("INFO: %w", err)
	}
	return ParseInfo(v.Text), nil
}

// Do sends one command and returns its reply. An error reply is an Error.
func (c *Conn) Do(ctx context.Context, words ...string) (resp.Value, error) {
	values, err := c.Exchange(ctx, resp.AppendCommand(nil, words...), 1)
	if err != nil {
		return resp.Value{}, err
	}
	return values[0], ErrorOf(values[0])
}

// Exchange sends encoded commands in one write and reads their replies, error replies included.
// After an error the connection is closed. Nothing is sent once ctx has ended: the error is then
// ErrNotSent, as it is without a connection.
func (c *Conn) Exchange(ctx context.Context, request []byte, replies int) ([]resp.Value, error) {
	if ctx.Err() != nil {
		return nil, unsent{context.Cause(ctx)}
	}
	if err := c.Connect(ctx); err != nil {
		return nil, unsent{err}
	}
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	stop := expireWith(ctx, c.wire)
	values, err := c.wire.exchange(request, replies)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if !stop() || err != nil {
		c.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("no reply: %w", err)
	}
	return values, nil
}

// Timing of a subscription.
const (
	// until a ping is sent, and after that until the connection is closed
	silence          = 3 * time.Second
	resubscribeFirst = 100 * time.Millisecond
	resubscribeLast  = time.Second
)

// Subscribe sends SUBSCRIBE or PSUBSCRIBE with its channel or pattern, and calls heard for each
// message, until ctx ends. It resubscribes after the connection breaks; messages published
// meanwhile are lost. confirmed is called for each confirmed subscription.
func (c *Conn) Subscribe(
	ctx context.Context, command, channel string, confirmed func(),
	heard func(channel, payload string),
) {
	wait := resubscribeFirst
	for ctx.Err() == nil {
		_ = c.subscribeOnce(ctx, command, channel, func() { wait = resubscribeFirst; confirmed() }, heard)
		c.Close()
		pause, cancel := context.WithTimeout(ctx, wait)
		<-pause.Done()
		cancel()
		wait = min(2*wait, resubscribeLast)
	}
}

func (c *Conn) subscribeOnce(
	ctx context.Context, command, channel string, confirmed func(),
	heard func(channel, payload string),
) error {
	if err := c.Connect(ctx); err != nil {
		return err
	}
	stop := expireWith(ctx, c.wire)
	defer stop()
	c.wire.expected.Store(math.MaxInt64) // messages
	_, err := c.wire.Write(resp.AppendCommand(nil, command, channel))
	if err != nil {
		return err
	}
	pinged := true // no ping before the server has subscribed
	for {
		v, err := c.wire.next(ctx, silence)
		switch {
		case IsTimeout(err) && !pinged:
			pinged = true
			_, err := c.wire.Write(resp.AppendCommand(nil, "PING"))
			if err != nil {
				return err
			}
			continue
		case err != nil || v.IsError():
			return err
		}
		pinged = false
		switch n := len(v.Items); {
		case n < 3:
		// a pmessage has the pattern before the channel
		case v.Items[0].Text == "message", v.Items[0].Text == "pmessage":
			heard(v.Items[n-2].Text, v.Items[n-1].Text)
		case v.Items[0].Text == "subscribe", v.Items[0].Text == "psubscribe":
			confirmed()
		}
	}
}

// Connect dials unless the connection is established. The error is dial's.
func (c *Conn) Connect(ctx context.Context) error {
	if c.wire != nil {
		select {
		case <-c.wire.broken:
			c.Close()
		default:
			return nil
		}
	}
	raw, err := c.dial(ctx)
	if err != nil {
		return err
	}
	c.wire, c.remote = newWire(raw), raw.RemoteAddr().String()
	return nil
}

// Close closes the connection, which may be used again.
func (c *Conn) Close() {
	if c.wire != nil {
		c.wire.close()
		c.wire = nil
	}
}

// wire is an established connection. Its goroutine reads continuously, to detect the end of an idle
// connection.
type wire struct {
	net.Conn
	replies chan resp.Value
	broken  chan struct{} // closed when err is set
	err     error
	closed  chan struct{}
	once    sync.Once

	expected atomic.Int64 // replies that were asked for and have not arrived
}

// largeReplies are the replies that may be large at the same time in this process: a hostile server
// has as many as it likes.
var largeReplies = make(chan struct{}, 2)

// errUnasked ends a connection whose server sends much that nobody has asked for.
var errUnasked = errors.New("the server sends a large reply without a command")

func newWire(c net.Conn) *wire {
	w := &wire{
		Conn:    c,
		replies: make(chan resp.Value),
		broken:  make(chan struct{}),
		closed:  make(chan struct{}),
	}
	go w.read()
	return w
}

func (w *wire) read() {
	defer close(w.broken)
	in := bufio.NewReaderSize(w.Conn, 32<<10)
	for {
		if w.err = w.readOne(in); w.err != nil {
			return
		}
	}
}

// readOne reads and delivers one reply.
func (w *wire) readOne(in *bufio.Reader) error {
	large := false
	v, err := resp.ReadLarge(in, func() error {
		if w.expected.Load() <= 0 {
			return errUnasked
		}
		select {
		case largeReplies <- struct{}{}:
			large = true
			return nil
		case <-w.closed:
			return net.ErrClosed
		}
	})
	if large {
		defer func() { <-largeReplies }()
	}
	if err != nil {
		return err
	}
	w.expected.Add(-1)
	select {
	case w.replies <- v:
		return nil
	case <-w.closed:
		return net.ErrClosed
	}
}

func (w *wire) close() {
	w.once.Do(func() {
		close(w.closed)
		_ = w.Conn.Close()
	})
}

func (w *wire) exchange(request []byte, replies int) ([]resp.Value, error) {
	w.expected.Store(int64(replies))
	if _, err := w.Write(request); err != nil {
		return nil, err
	}
	values := make([]resp.Value, replies)
	for i := range values {
		select {
		case values[i] = <-w.replies:
		case <-w.broken:
			return nil, w.err
		}
	}
	return values, nil
}

// next waits for the next reply, at most for limit.
func (w *wire) next(ctx context.Context, limit time.Duration) (resp.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case v := <-w.replies:
		return v, nil
	case <-w.broken:
		return resp.Value{}, w.err
	case <-ctx.Done():
		return resp.Value{}, ctx.Err()
	}
}

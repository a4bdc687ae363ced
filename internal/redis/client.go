package redis

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Client sends commands to servers at any address. It keeps idle connections, so that a server that
// accepts no new ones can still be reached. It is created by NewClient, ended by Close, and safe
// for concurrent use.
type Client struct {
	tcp    DialFunc
	mu     sync.Mutex
	idle   map[identity][]idle
	queues map[string]*wire  // by the key of Queue
	floods map[string]*flood // by the key of Flood
}

// identity distinguishes connections.
type identity struct {
	address, username, password, trust string
	secure                             bool
}

// idle is an unused connection.
type idle struct {
	conn  *Conn
	since time.Time
}

// Limits of idle connections per identity: their number, and how long they are kept. A lasting
// fault uses its connection every few seconds.
const (
	keptIdle = 4
	keptFor  = 10 * time.Minute
)

// NewClient returns a client without connections. tcp dials TCP connections; nil = a net.Dialer.
func NewClient(tcp DialFunc) *Client {
	return &Client{
		tcp:    tcp,
		idle:   map[identity][]idle{},
		queues: map[string]*wire{},
		floods: map[string]*flood{},
	}
}

// Close closes the idle connections, and ends all queues and floods.
func (c *Client) Close() {
	c.mu.Lock()
	floods := c.floods
	c.floods = map[string]*flood{}
	defer func() {
		c.mu.Unlock()
		for _, f := range floods {
			f.close()
		}
	}()
	for id, all := range c.idle {
		for _, i := range all {
			i.conn.Close()
		}
		delete(c.idle, id)
	}
	for key, w := range c.queues {
		w.close()
		delete(c.queues, key)
	}
}

// Do sends one command and returns its reply, converted by Plain. An error reply is an Error
// (IsReply); after any other error the command may have been executed.
func (c *Client) Do(ctx context.Context, address string, login Login, command ...any) (any, error) {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = fmt.Sprint(w)
	}
	conn, giveBack := c.take(address, login)
	defer giveBack()
	v, err := conn.Do(ctx, words...)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", nameOf(words), address, err)
	}
	return Plain(v), nil
}

// nameOf is a command's name for errors, with its subcommand, but without values: they may be
// secret.
func nameOf(words []string) string {
	switch strings.ToUpper(words[0]) {
	case "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "INFO", "SENTINEL":
		return strings.Join(words[:min(2, len(words))], " ")
	}
	return words[0]
}

// Shutdown sends SHUTDOWN NOSAVE. It succeeds if the connection breaks.
func (c *Client) Shutdown(ctx context.Context, address string, login Login) error {
	return c.end(ctx, address, login, "SHUTDOWN", "NOSAVE")
}

// Segfault sends DEBUG SEGFAULT. It succeeds if the connection breaks.
func (c *Client) Segfault(ctx context.Context, address string, login Login) error {
	return c.end(ctx, address, login, "DEBUG", "SEGFAULT")
}

func (c *Client) end(ctx context.Context, address string, login Login, command ...string) error {
	conn := c.conn(address, login)
	defer conn.Close()
	// Log in first: a failed login must not be mistaken for a server that has ended.
	if _, err := conn.Do(ctx, "PING"); err != nil {
		return fmt.Errorf("PING at %s: %w", address, err)
	}
	_, err := conn.Do(ctx, command...)
	switch {
	case err == nil:
		return fmt.Errorf("%v at %s: the server replied and is still running", command, address)
	case IsBroken(err):
		return nil
	}
	return fmt.Errorf("%v at %s: %w", command, address, err)
}

// Listen calls heard for every message of the channels that match a pattern, with the time of its
// arrival, until ctx ends. It resubscribes after the connection breaks; messages published
// meanwhile are lost.
func (c *Client) Listen(
	ctx context.Context, address string, login Login, pattern string,
	heard func(at time.Time, channel, payload string),
) {
	c.conn(address, login).Subscribe(ctx, "PSUBSCRIBE", pattern, func() {},
		func(channel, payload string) {
			heard(time.Now(), channel, payload) //nolint:forbidigo // the result is the current time
		})
}

// Queue sends commands in one write over a separate connection, and returns after the first reply;
// after an error nothing stays queued.
// The server executes the others one after the other, and drops those that it has not started when
// the connection is closed: by HangUp, Close, or the end of this process. If the key already has a
// queue nothing is sent.
func (c *Client) Queue(
	ctx context.Context, key, address string, login Login, commands [][]string,
) error {
	if c.Queued(key) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, login.timeout())
	defer cancel()
	conn := c.conn(address, login)
	var request []byte
	for _, words := range commands {
		request = resp.AppendCommand(request, words...)
	}
	values, err := conn.Exchange(ctx, request, 1)
	if err == nil {
		err = ErrorOf(values[0])
	}
	if err == nil && conn.wire == nil { // the timeout has just closed the connection
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return fmt.Errorf("%s at %s: %w", commands[0][0], address, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues[key] != nil { // another call was faster
		conn.Close()
		return nil
	}
	c.queues[key] = conn.wire
	go c.drainQueue(key, conn.wire, len(commands)-1)
	return nil
}

// drainQueue reads the other replies until the last one, or until the connection ends, and removes
// the queue.
func (c *Client) drainQueue(key string, w *wire, left int) {
	for over := false; left > 0 && !over; left-- {
		select {
		case <-w.replies:
		case <-w.broken:
			over = true
		}
	}
	w.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues[key] == w {
		delete(c.queues, key)
	}
}

// Queued reports whether this process has a queue of that key which the server has not completed.
func (c *Client) Queued(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues[key] != nil
}

// HangUp ends the queue and the flood of that key, if there are any.
func (c *Client) HangUp(key string) {
	c.mu.Lock()
	if w := c.queues[key]; w != nil {
		w.close()
		delete(c.queues, key)
	}
	f := c.floods[key]
	c.mu.Unlock()
	if f != nil { // a call that holds it ends first
		c.endFlood(key, f)
	}
}

// take returns an idle connection, or a new one.
func (c *Client) take(address string, login Login) (conn *Conn, giveBack func()) {
	id := identity{address, login.Username, login.Password, login.Trust, login.TLS != nil}
	now := time.Now() //nolint:forbidigo // the age of an idle connection; no figure depends on it
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, all := range c.idle {
		for len(all) > 0 && now.Sub(all[0].since) > keptFor {
			all[0].conn.Close()
			all = all[1:]
		}
		if c.idle[other] = all; len(all) == 0 {
			delete(c.idle, other)
		}
	}
	if all := c.idle[id]; len(all) > 0 {
		conn = all[len(all)-1].conn
		conn.timeout = login.timeout()
		c.idle[id] = all[:len(all)-1]
	} else {
		conn = c.conn(address, login)
	}
	return conn, func() { c.giveBack(id, conn) }
}

// conn is a new connection to an address.
func (c *Client) conn(address string, login Login) *Conn {
	d := Dialer{Login: login, TCP: c.tcp}
	return NewConn(login.timeout(), func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, login.timeout())
		defer cancel()
		return d.Dial(ctx, address)
	})
}

func (c *Client) giveBack(id identity, conn *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.wire == nil || len(c.idle[id]) >= keptIdle {
		conn.Close()
		return
	}
	c.idle[id] = append(c.idle[id], idle{conn, time.Now()}) //nolint:forbidigo // as in take
}

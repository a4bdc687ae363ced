package redis

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Client commands servers at any address. It keeps its connections: a server that takes no new ones can still be commanded. NewClient makes one,
// Close ends it. All methods may be called at any time.
type Client struct {
	tcp    DialFunc
	mu     sync.Mutex
	idle   map[identity][]idle
	queues map[string]*wire // by the key of Queue
}

// identity distinguishes connections.
type identity struct {
	address, username, password, trust string
	secure                             bool
}

// idle is a connection that nobody uses.
type idle struct {
	conn  *Conn
	since time.Time
}

// How many connections of one identity are kept that nobody uses, and for how long. A fault that lasts uses its own every few seconds.
const (
	keptIdle = 4
	keptFor  = 10 * time.Minute
)

// NewClient makes a client that has no connection yet. tcp makes its TCP connections; nil = a net.Dialer.
func NewClient(tcp DialFunc) *Client {
	return &Client{tcp: tcp, idle: map[identity][]idle{}, queues: map[string]*wire{}}
}

// Close closes the connections that nobody uses, and ends all queues.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// Do sends one command and returns its reply, as Plain makes it. An error reply is an Error (IsReply); every other error leaves open whether the
// command was carried out.
func (c *Client) Do(ctx context.Context, address string, login Login, command ...any) (any, error) {
	words := make([]string, len(command))
	for i, w := range command {
		words[i] = fmt.Sprint(w)
	}
	conn, giveBack := c.take(address, login)
	defer giveBack()
	v, err := conn.Do(ctx, words...)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", words[0], address, err)
	}
	return Plain(v), nil
}

// Shutdown sends SHUTDOWN NOSAVE. A connection that breaks is the success.
func (c *Client) Shutdown(ctx context.Context, address string, login Login) error {
	return c.end(ctx, address, login, "SHUTDOWN", "NOSAVE")
}

// Segfault sends DEBUG SEGFAULT. A connection that breaks is the success.
func (c *Client) Segfault(ctx context.Context, address string, login Login) error {
	return c.end(ctx, address, login, "DEBUG", "SEGFAULT")
}

func (c *Client) end(ctx context.Context, address string, login Login, command ...string) error {
	conn := c.conn(address, login)
	defer conn.Close()
	// Log in first: a login that fails must not pass for a server that ended.
	if _, err := conn.Do(ctx, "PING"); err != nil {
		return fmt.Errorf("PING at %s: %w", address, err)
	}
	_, err := conn.Do(ctx, command...)
	switch {
	case err == nil:
		return fmt.Errorf("%v at %s: the server answered and goes on", command, address)
	case IsBroken(err):
		return nil
	}
	return fmt.Errorf("%v at %s: %w", command, address, err)
}

// Listen calls heard with every message of the channels that match a pattern, at the instant at which it came, until ctx ends. It subscribes again
// where the connection breaks; what is published meanwhile is lost.
func (c *Client) Listen(ctx context.Context, address string, login Login, pattern string, heard func(at time.Time, channel, payload string)) {
	c.conn(address, login).Subscribe(ctx, "PSUBSCRIBE", pattern, func() {}, func(channel, payload string) {
		heard(time.Now(), channel, payload) //nolint:forbidigo // the instant is what is asked for
	})
}

// Queue sends commands in one go over a connection of their own, and returns when the first was answered: after any error nothing stays queued.
// The server works the others off one after the other, and drops those that it has not begun when the connection ends: by HangUp, Close, or with
// this process. Where the key has a queue already nothing is sent.
func (c *Client) Queue(ctx context.Context, key, address string, login Login, commands [][]string) error {
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
	if err == nil && conn.wire == nil { // the time ran out just now, which ended the connection
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
	go c.workOff(key, conn.wire, len(commands)-1)
	return nil
}

// workOff takes the other replies until the last came or the connection ended, and forgets the queue.
func (c *Client) workOff(key string, w *wire, left int) {
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

// Queued says whether this process holds a queue of that key which the server has not worked off.
func (c *Client) Queued(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues[key] != nil
}

// HangUp ends the queue of that key, if there is one.
func (c *Client) HangUp(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.queues[key]; w != nil {
		w.close()
		delete(c.queues, key)
	}
}

// take is an idle connection, or a new one.
func (c *Client) take(address string, login Login) (conn *Conn, giveBack func()) {
	id := identity{address, login.Username, login.Password, login.Trust, login.TLS != nil}
	now := time.Now() //nolint:forbidigo // how long a connection lay idle; no figure depends on it
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

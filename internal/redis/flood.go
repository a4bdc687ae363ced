package redis

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

const (
	// floodFor is how long a flood stays that no call goes on with: a process that stands still must
	// not hold a server's memory. A call for each of many servers comes round by then.
	floodFor = 2 * time.Minute
	// writeGrace is how long a write may take that has begun when a call is to end.
	writeGrace = time.Second
	// sendBuffer is how many bytes this machine keeps for a server that does not read.
	sendBuffer = 256 << 10
)

// flood is connections with requests that are never complete.
type flood struct {
	ended context.Context // when it is closed
	end   context.CancelFunc
	idle  *time.Timer // ends it

	mu   sync.Mutex // held by a call
	full []net.Conn // with a whole argument, but for its last byte
	held int64      // bytes that these have sent
	last net.Conn   // the one that is being filled; nil = none
	sent int64      // bytes that it has sent
}

// Flood has a server keep bytes in memory: it sends requests over connections of its own, each with
// an argument of so many bytes that is never complete, so that the server executes none of them. It
// returns how many bytes the server has got in all calls with this key, once these are most, or ctx
// has ended; an error where none can be made, or one breaks (IsBroken, or IsReply where the server
// has said why). The server drops them when the connections are closed: by HangUp, Close, the end
// of this process, or 2 minutes after the last call.
func (c *Client) Flood(
	ctx context.Context, key, address string, login Login, argument, most int64,
) (sent int64, err error) {
	f := c.floodOf(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle.Stop()
	defer f.idle.Reset(floodFor)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ended, cancel)()
	for f.held+f.sent < most && err == nil && ctx.Err() == nil {
		if f.last == nil {
			err = f.connect(ctx, c.tcp, address, login, argument)
			continue
		}
		if err = f.send(ctx, zeros[:min(argument-1-f.sent, most-f.held-f.sent, int64(len(zeros)))]); err != nil {
			err = fmt.Errorf("fill the memory at %s: %w", address, cmp.Or(f.refusal(), err))
		}
		if f.sent == argument-1 {
			f.full, f.held = append(f.full, f.last), f.held+f.sent
			f.last, f.sent = nil, 0
		}
	}
	if ctx.Err() != nil { // the error is that of the interrupted write
		err = nil
	}
	return f.held + f.sent, err
}

func (c *Client) floodOf(key string) *flood {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.floods[key]
	if f == nil {
		f = &flood{}
		f.ended, f.end = context.WithCancel(context.Background())
		f.idle = time.AfterFunc(floodFor, func() { c.endFlood(key, f) })
		c.floods[key] = f
	}
	return f
}

// endFlood ends a flood, if it is still that of its key: the next one is not ended by the time of
// this one.
func (c *Client) endFlood(key string, f *flood) {
	c.mu.Lock()
	if c.floods[key] == f {
		delete(c.floods, key)
	}
	c.mu.Unlock()
	f.close()
}

// connect opens another connection, and begins a request over it.
func (f *flood) connect(
	ctx context.Context, tcp DialFunc, address string, login Login, argument int64,
) error {
	// PING: a server that accepts connections and does not answer is not filled
	dialer := Dialer{Login: login, TCP: tcp, Setup: [][]string{{"PING"}}}
	// a dial that fails by the deadline of ctx would not be told from one of a server that is silent
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), login.timeout())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	conn, err := dialer.Dial(within, address)
	if err != nil {
		return err
	}
	if plain, is := conn.(*net.TCPConn); is {
		_ = plain.SetWriteBuffer(sendBuffer)
	}
	f.last = conn
	err = f.send(ctx, fmt.Appendf(nil, "*2\r\n$4\r\nECHO\r\n$%d\r\n", argument))
	f.sent = 0
	return err
}

// zeros are what servers are filled with.
var zeros [256 << 10]byte

// send writes to the connection that is being filled. The end of ctx lets a write end that has
// begun, the end of the flood does not. A connection by TLS cannot go on after a part of a write.
func (f *flood) send(ctx context.Context, bytes []byte) error {
	conn := f.last
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetWriteDeadline(time.Now().Add(writeGrace)) //nolint:forbidigo // of a connection
	})
	defer expireWith(f.ended, conn)()
	n, err := conn.Write(bytes)
	f.sent += int64(n)
	if stop() {
		return err
	}
	if _, secured := conn.(*tls.Conn); secured && err != nil {
		_ = conn.Close()
		f.last, f.sent = nil, 0
	} else {
		_ = conn.SetWriteDeadline(time.Time{})
	}
	return err
}

// refusal is the error reply of a server that has closed the connection that is being filled; nil
// if it sent none.
func (f *flood) refusal() error {
	if f.last == nil {
		return nil
	}
	_ = f.last.SetReadDeadline(time.Now().Add(refusalWithin)) //nolint:forbidigo // of a connection
	if reply, err := resp.ReadValue(bufio.NewReader(f.last)); err == nil {
		return ErrorOf(reply)
	}
	return nil
}

// refusalWithin is how long a reply is waited for on a connection that is closed: it is there.
const refusalWithin = 100 * time.Millisecond

// close drops what the server keeps.
func (f *flood) close() {
	f.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle.Stop()
	if f.last != nil {
		f.full = append(f.full, f.last)
	}
	for _, conn := range f.full {
		_ = conn.Close()
	}
	f.full, f.held, f.last, f.sent = nil, 0, nil, 0
}

// Package memnet is a network in memory, for tests in virtual time: listeners and connections by address, without
// sockets. All waiting is on channels and timers, and no mutex is held meanwhile, so that everything on it can run in a
// bubble of testing/synctest. A Network has to be made in the bubble that uses it.
//
// Only a Mode causes delays on this network. A write never blocks: the buffers have no limit.
package memnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mode determines what happens to dials to an address and to the data on its connections, in both directions.
type Mode int

// The modes.
const (
	Pass   Mode = iota // the zero value: everything arrives at once; a dial is refused if nothing listens
	Refuse             // dials are refused; open connections continue
	// no packet arrives: dials hang, and try again after 1, 3, 7, ... s as Linux does; open connections are held
	Swallow
	// dials succeed, as a kernel accepts for a process that hangs; nothing passes until another mode is set
	Hold
)

// firstRetry is the time after which an unanswered dial is retried; it doubles for each further retry.
const firstRetry = time.Second

// Network is a set of addresses. Any goroutine may call its methods.
type Network struct {
	mu        sync.Mutex
	endpoints map[string]*endpoint
	ports     int // handed out
}

// endpoint is an address with its listener and connections.
type endpoint struct {
	mode     Mode
	listener *listener
	conns    map[*conn]bool // the accepting ends
	dials    int
}

// New returns a network without listeners.
func New() *Network {
	return &Network{endpoints: map[string]*endpoint{}}
}

// Set sets the mode of an address. What was held arrives when the mode is Pass or Refuse.
func (n *Network) Set(address string, m Mode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.at(address)
	if e.mode = m; e.holds() {
		return
	}
	for c := range e.conns {
		c.in.release()
		c.out.release()
	}
}

// Cut resets the open connections of an address, in any mode.
func (n *Network) Cut(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.at(address)
	for c := range e.conns {
		c.in.reset()
		c.out.reset()
	}
	clear(e.conns)
}

// Dials is the number of SYN packets sent to an address so far.
func (n *Network) Dials(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at(address).dials
}

// Conns is how many connections of an address are open.
func (n *Network) Conns(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.at(address).conns)
}

// Listen begins to listen on host:port; port 0 selects a free one. The error is EADDRINUSE if the address is in use.
func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if host, ok := strings.CutSuffix(address, ":0"); ok {
		address = fmt.Sprintf("%s:%d", host, n.port())
	}
	e := n.at(address)
	if e.listener != nil {
		return nil, &net.OpError{
			Op:   "listen",
			Net:  "tcp",
			Addr: addr(address),
			Err:  os.NewSyscallError("bind", syscall.EADDRINUSE),
		}
	}
	e.listener = &listener{network: n, endpoint: e, address: addr(address)}
	return e.listener, nil
}

// Serve listens on host:port and calls handle with each connection, in a goroutine of its own: while no connection is
// open, nothing waits. It returns what ends the listening. The error is EADDRINUSE if the address is in use.
func (n *Network) Serve(address string, handle func(net.Conn)) (stop func() error, err error) {
	l, err := n.Listen(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l.(*listener).handle = handle
	return l.Close, nil
}

// Dial connects to host:port; a name is an address like any other. Its signature is net.Dialer.DialContext's.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	failed := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: err}
	}
	for wait := firstRetry; ; wait *= 2 {
		if ctx.Err() != nil {
			return failed(ctx.Err())
		}
		c, err := n.connect(address)
		if err != nil {
			return failed(err)
		}
		if c != nil {
			return c, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// connect sends one request for a connection; without an error and a connection it was lost.
func (n *Network) connect(address string) (*conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.at(address)
	e.dials++
	switch {
	case e.mode == Swallow:
		return nil, nil
	case e.mode == Refuse, e.listener == nil:
		return nil, os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	up, down := &stream{}, &stream{}
	own := addr(fmt.Sprintf("127.0.0.1:%d", n.port()))
	accepted := &conn{
		network: n,
		of:      e,
		in:      up,
		out:     down,
		local:   addr(address),
		remote:  own,
	}
	dialled := &conn{
		network: n,
		of:      e,
		in:      down,
		out:     up,
		local:   own,
		remote:  addr(address),
	}
	accepted.counted, dialled.counted = accepted, accepted
	e.conns[accepted] = true
	if e.listener.handle != nil {
		go e.listener.handle(accepted)
		return dialled, nil
	}
	e.listener.backlog = append(e.listener.backlog, accepted)
	e.listener.signal.send()
	return dialled, nil
}

// at is the endpoint of an address. The caller holds the mutex.
func (n *Network) at(address string) *endpoint {
	e := n.endpoints[address]
	if e == nil {
		e = &endpoint{conns: map[*conn]bool{}}
		n.endpoints[address] = e
	}
	return e
}

// port is a port that was not handed out before. The caller holds the mutex.
func (n *Network) port() int {
	n.ports++
	return 40_000 + n.ports
}

// addr is a net.Addr of tcp.
type addr string

func (addr) Network() string {
	return "tcp"
}

func (a addr) String() string {
	return string(a)
}

// signal wakes all that wait for a change. The network's mutex guards it.
type signal struct{ waiting chan struct{} }

type listener struct {
	network  *Network
	endpoint *endpoint
	address  addr
	handle   func(net.Conn) // of Serve; nil = Accept returns the connections
	backlog  []*conn
	closed   bool
	signal   signal
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		l.network.mu.Lock()
		if l.closed {
			l.network.mu.Unlock()
			return nil, &net.OpError{
				Op:   "accept",
				Net:  "tcp",
				Addr: l.address,
				Err:  net.ErrClosed,
			}
		}
		if len(l.backlog) > 0 {
			c := l.backlog[0]
			l.backlog = l.backlog[1:]
			l.network.mu.Unlock()
			return c, nil
		}
		wait := l.signal.wait()
		l.network.mu.Unlock()
		<-wait
	}
}

func (s *signal) wait() <-chan struct{} {
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

// Close ends the listening. Connections that were not accepted are reset.
func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed, l.endpoint.listener = true, nil
	for _, c := range l.backlog {
		c.out.finish(errReset, l.endpoint.holds())
		delete(l.endpoint.conns, c)
	}
	l.backlog = nil
	l.signal.send()
	return nil
}

func (e *endpoint) holds() bool {
	return e.mode == Swallow || e.mode == Hold
}

func (s *signal) send() {
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}

func (l *listener) Addr() net.Addr {
	return l.address
}

var errReset = errors.New("reset") // represents ECONNRESET in a stream

package agenttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Network connects agents and sessions in memory, so that a test runs in a synctest bubble. The zero value has no listener.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
	ports     int
}

// Listen returns a listener on a new port of host.
func (n *Network) Listen(host string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports++
	l := &memoryListener{network: n, address: memoryAddress(fmt.Sprintf("%s:%d", host, n.ports)), dialed: make(chan net.Conn), closed: make(chan struct{})}
	if n.listeners == nil {
		n.listeners = map[string]*memoryListener{}
	}
	n.listeners[l.address.String()] = l
	return l
}

// Dial is a collect.Config.Dial. An address that nobody listens at refuses.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: network, Addr: memoryAddress(address), Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	client, server := newPipe("client:1", l.address)
	select {
	case l.dialed <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Addr: memoryAddress(address), Err: ctx.Err()}
	}
}

// memoryListener accepts what is dialed.
type memoryListener struct {
	network *Network
	address memoryAddress
	dialed  chan net.Conn
	closed  chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.dialed:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.network.listeners[l.address.String()] != l {
		return errors.New("closed before")
	}
	delete(l.network.listeners, l.address.String())
	close(l.closed)
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.address }

// memoryAddress is host:port.
type memoryAddress string

func (memoryAddress) Network() string  { return "memory" }
func (a memoryAddress) String() string { return string(a) }

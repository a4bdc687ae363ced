package goclients

import (
	"net"
	"sync"
	"syscall"
)

// counted counts a connection until it is closed. What it returns shows the file descriptor if conn
// does, as go-redis looks there whether an idle connection was closed by the server.
func (p *presence) counted(conn net.Conn) net.Conn {
	p.opened()
	c := connection{Conn: conn, of: p, once: &sync.Once{}}
	if raw, ok := conn.(syscall.Conn); ok {
		return descriptor{c, raw}
	}
	return c
}

type connection struct {
	net.Conn
	of   *presence
	once *sync.Once
}

// Close closes the connection.
func (c connection) Close() error {
	c.once.Do(c.of.closed)
	return c.Conn.Close()
}

type descriptor struct {
	connection
	syscall.Conn
}

// Package tcptest has TCP servers and proxies on loopback, for tests that stand between a client and a server. They end
// with the test.
package tcptest

import (
	"net"
	"testing"
)

// Listen starts a server that passes each connection to serve, which must return at once; it returns the server's
// address.
func Listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			serve(c)
		}
	}()
	return l.Addr().String()
}

// Proxy starts a proxy of server; it returns the proxy's address. forward moves the data of one direction of a
// connection until a side fails.
func Proxy(t testing.TB, server string, forward func(to, from net.Conn, answers bool)) string {
	t.Helper()
	return Listen(t, func(client net.Conn) {
		c, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			return
		}
		one := func(to, from net.Conn, answers bool) {
			defer func() { _ = to.Close() }()
			forward(to, from, answers)
		}
		go one(c, client, false)
		go one(client, c, true)
	})
}

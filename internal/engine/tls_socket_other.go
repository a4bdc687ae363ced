//go:build !linux

package engine

import "net"

// tlsSocket is used with epoll only.
type tlsSocket struct{}

func tlsSocketOf(net.Conn) (*tlsSocket, *net.TCPConn) { return nil, nil }

func (*tlsSocket) take(socket)                     {}
func (*tlsSocket) begin()                          {}
func (*tlsSocket) read([]byte) (int, int64, error) { return 0, 0, errAgain }
func (*tlsSocket) seal([]byte) ([]byte, error)     { return nil, errAgain }
func (*tlsSocket) close()                          {}

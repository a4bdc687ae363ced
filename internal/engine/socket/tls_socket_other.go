//go:build !linux

package socket

import "net"

// TLS is used with epoll only.
type TLS struct{}

// TLSOf returns nil.
func TLSOf(net.Conn) (*TLS, *net.TCPConn) {
	return nil, nil
}

// Take does nothing.
func (*TLS) Take(FD) {}

// Begin does nothing.
func (*TLS) Begin(bool) {}

// Read fails.
func (*TLS) Read([]byte) (int, int64, error) {
	return 0, 0, ErrAgain
}

// Seal fails.
func (*TLS) Seal([]byte) ([]byte, error) {
	return nil, ErrAgain
}

// Close does nothing.
func (*TLS) Close() {}

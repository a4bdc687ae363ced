//go:build !linux

package socket

import "net"

// Stamped returns the connection itself: it has no stamps.
func Stamped(c net.Conn) net.Conn {
	return c
}

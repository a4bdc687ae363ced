package socket

import (
	"crypto/tls"
	"net"
)

// stamper is a connection that tells when its data arrived at this host, however late it was read.
type stamper interface {
	// Stamp returns when the last byte that was read arrived, by the wall clock in nanoseconds; 0 =
	// not known.
	Stamp() int64
}

// StamperOf returns the stamper below a connection; nil if there is none.
func StamperOf(c net.Conn) stamper {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	s, _ := c.(stamper)
	return s
}

// LastStamp returns the stamp of what was last read; 0 = not known.
func LastStamp(s stamper) int64 {
	if s == nil {
		return 0
	}
	return s.Stamp()
}

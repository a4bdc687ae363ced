package socket

import (
	"net"
	"syscall"
)

// Take takes the socket of a connection from Go's poller to one of an event loop, which reports it
// as e; false if that is not possible, and the connection stays as it is. secured is nil without TLS.
func Take(stands net.Conn, poll Poller, e Event) (fd FD, secured *TLS, ok bool) {
	secured, below := TLSOf(stands)
	tcp, ok := stands.(syscall.Conn)
	if secured != nil {
		tcp, ok = below, true
	}
	if !ok {
		return -1, nil, false
	}
	if fd, ok = Detach(tcp); !ok {
		return -1, nil, false
	}
	if err := poll.Add(int(fd), e); err != nil {
		fd.Close()
		return -1, nil, false
	}
	if secured != nil {
		_ = below.Close()
		secured.Take(fd)
	} else {
		_ = stands.Close()
	}
	return fd, secured, true
}

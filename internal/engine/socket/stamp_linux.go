package socket

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// stampedConn is a TCP connection on Go's poller that reads the kernel's stamps: until an event loop
// takes it, and below TLS. One goroutine at a time may read.
type stampedConn struct {
	*net.TCPConn
	raw      syscall.RawConn
	receiver Receiver
	stamp    atomic.Int64
	taken    *TLS // by an event loop
}

// Stamped returns the connection with stamps; c itself if it cannot have them.
func Stamped(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok || !Bounded {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}); err != nil || failed != nil {
		return c
	}
	return &stampedConn{TCPConn: tcp, raw: raw}
}

func (c *stampedConn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.taken != nil {
		return c.taken.receive(p)
	}
	var stamp int64
	var failed error
	err = c.raw.Read(func(fd uintptr) bool {
		n, stamp, failed = c.receiver.Read(FD(fd), p)
		return failed != ErrAgain //nolint:errorlint // a bare errno
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, os.NewSyscallError("recvmsg", failed)
	case n == 0:
		return 0, io.EOF
	}
	c.stamp.Store(stamp)
	return n, nil
}

// Stamp implements stamper.
func (c *stampedConn) Stamp() int64 {
	return c.stamp.Load()
}

func (c *stampedConn) Write(p []byte) (int, error) {
	if c.taken != nil {
		return c.taken.collect(p), nil
	}
	return c.TCPConn.Write(p)
}

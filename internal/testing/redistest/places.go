package redistest

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BlackHole returns an address that never responds: a listener whose backlog is full, so that the kernel drops further
// SYNs, as happens at the address of a dead pod.
func BlackHole(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
	for range 8 {
		c, err := net.DialTimeout("tcp", address, 50*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the backlog does not fill up")
	return ""
}

// LoadSlowly kills the server and makes each further start of it load the given number of keys in about d, during which
// it replies with LOADING. Launch starts it without waiting for that.
func (s *Server) LoadSlowly(keys int, d time.Duration) {
	s.T.Helper()
	s.Do("debug", "populate", keys, "filled", 100)
	s.Do("save")
	s.Kill()
	s.configure(fmt.Sprintf("key-load-delay %d", d.Microseconds()/int64(keys)),
		"loading-process-events-interval-bytes 1024")
}

// Launch starts a killed process again, on the same port with the same files, without waiting for it.
func (s *Server) Launch() {
	s.T.Helper()
	s.Kill()
	s.run()
}

package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/testing/memnet"
)

const address = "10.0.0.1:6379"

// pair is a connection to address, both ends.
func pair(t *testing.T, n *memnet.Network, l net.Listener) (dialled, accepted net.Conn) {
	t.Helper()
	dialled, err := n.Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return dialled, accepted
}

func listen(t *testing.T, n *memnet.Network) net.Listener {
	t.Helper()
	l, err := n.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	p := make([]byte, 64)
	if n, err := c.Read(p); err != nil || string(p[:n]) != want {
		t.Errorf("read %q, %v; want %q", p[:n], err, want)
	}
}

func TestConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		l := listen(t, n)
		if _, err := n.Listen(address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v", err)
		}
		c, s := pair(t, n, l)
		if c.RemoteAddr().String() != address || s.RemoteAddr().String() != c.LocalAddr().String() {
			t.Errorf("%s to %s, accepted from %s", c.LocalAddr(), c.RemoteAddr(), s.RemoteAddr())
		}
		_, _ = c.Write([]byte("ping"))
		read(t, s, "ping")
		began := time.Now()
		_ = c.SetReadDeadline(began.Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		_ = c.SetReadDeadline(time.Time{})
		_, _ = s.Write([]byte("bye"))
		_ = s.Close()
		read(t, c, "bye")
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a write without a reader: %v", err)
		}
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		_ = c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read of a closed connection: %v", err)
		}
		if n.Conns(address) != 0 {
			t.Errorf("%d connections are left", n.Conns(address))
		}
		_ = l.Close()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed listener: %v", err)
		}
		if _, err := n.Dial(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("without a listener: %v", err)
		}
	})
}

func TestModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		l := listen(t, n)
		c, s := pair(t, n, l)

		n.Set(address, memnet.Refuse)
		if _, err := n.Dial(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("refuse: %v", err)
		}
		_, _ = c.Write([]byte("continues"))
		read(t, s, "continues")

		n.Set(address, memnet.Hold)
		c2, s2 := pair(t, n, l)
		_, _ = c.Write([]byte("held"))
		_, _ = c2.Write([]byte("held too"))
		_ = c2.Close()
		time.AfterFunc(time.Second, func() { n.Set(address, memnet.Pass) })
		began := time.Now()
		read(t, s, "held")
		read(t, s2, "held too")
		if _, err := s2.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}

		n.Set(address, memnet.Swallow)
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		began, before := time.Now(), n.Dials(address)
		if _, err := n.Dial(ctx, "tcp", address); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(began) != 2500*time.Millisecond {
			t.Errorf("swallow: %v after %s", err, time.Since(began))
		}
		if tries := n.Dials(address) - before; tries != 2 {
			t.Errorf("%d packets in 2.5 s, want 2", tries)
		}
		began = time.Now()
		time.AfterFunc(1500*time.Millisecond, func() { n.Set(address, memnet.Pass) })
		if _, err := n.Dial(t.Context(), "tcp", address); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("the third try: %v after %s", err, time.Since(began))
		}

		n.Cut(address)
		for _, end := range []net.Conn{c, s} {
			if _, err := end.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("cut: %v", err)
			}
		}
	})
}

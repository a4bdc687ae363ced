package socket

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSleep: what arrives does not end a sleep, and the next wait reports it; a wake-up and the end of a connection do.
func TestSleep(t *testing.T) {
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(pair[0]) }()
	defer func() { _ = unix.Close(pair[1]) }()
	if err := p.Add(pair[0], Event{Number: 7}); err != nil {
		t.Fatal(err)
	}
	p.Wait(0, 0) // it can be written
	if _, err := unix.Write(pair[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	const length = 20 * time.Millisecond
	began := time.Now()
	if open := p.Sleep(0, int64(length)); !open || time.Since(began) < length {
		t.Errorf("the socket ended the sleep after %s; the connection is open: %v", time.Since(began), open)
	}
	if ready := p.Wait(1, 1); len(ready) != 1 || ready[0].Number != 7 {
		t.Errorf("after the sleep %v is ready, want socket 7", ready)
	}
	p.Wake()
	p.Sleep(0, int64(time.Hour))
	if ready := p.Wait(1, 1); len(ready) != 0 {
		t.Errorf("after a wake-up %v is ready", ready)
	}
	if err := unix.Shutdown(pair[1], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if p.Sleep(1, int64(time.Hour)) {
		t.Error("a sleep that the end of a connection has ended does not say so")
	}
	if ready := p.Wait(1, 1); len(ready) != 1 {
		t.Errorf("after the end of the connection %v is ready", ready)
	}
}

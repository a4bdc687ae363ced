package probe

import (
	"bufio"
	"context"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// What a server sends, in whatever pieces, and when it closes the connection, decides what is recorded of a request: on
// real sockets, with their own poller.
func TestProbeOnSockets(t *testing.T) {
	huge := resp.AppendCommand(nil, string(make([]byte, 1<<20)))[len("*1\r\n"):]
	for _, tt := range []struct {
		name   string
		pieces []string
		closes bool
		ok     bool
	}{
		{"replies", []string{"+OK\r\n"}, false, true},
		{"a push before the reply, byte by byte", bytewise(">1\r\n+x\r\n+OK\r\n"), false, true},
		{"a push behind the reply", []string{"+OK\r\n>2\r\n+invalidate\r\n*0\r\n"}, false, true},
		{"as long as the buffer", []string{"$4087\r\n" + string(make([]byte, 4087)) + "\r\n"}, false, true},
		{"a huge reply", []string{string(huge)}, false, true},
		{"the end with the reply", []string{"+OK\r\n"}, true, true},
		{"the end with a part of the reply", []string{"$100\r\nabc"}, true, false},
		{"the end instead of a reply", nil, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := serve(t, func(c net.Conn) bool {
				for _, piece := range tt.pieces {
					_, _ = c.Write([]byte(piece)) // the client may have left
				}
				return !tt.closes
			})
			goroutines, files := runtime.NumGoroutine(), openFiles(t)
			sum := probed(t, address, 300*time.Millisecond)
			if lost := sum.Sent - sum.OK; tt.ok && lost > 0 {
				t.Errorf("%d of %d requests were not answered: %+v", lost, sum.Sent, sum)
			}
			if !tt.ok && sum.Errors[record.ClassReset] != sum.Sent {
				t.Errorf("%d of %d requests broke: %+v", sum.Errors[record.ClassReset], sum.Sent, sum)
			}
			for i := 0; openFiles(t) > files || runtime.NumGoroutine() > goroutines; i++ {
				if i > 1000 {
					t.Fatalf("%d files and %d goroutines are left, %d and %d were there", openFiles(t),
						runtime.NumGoroutine(), files, goroutines)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// The run may be aborted when nothing more is sent and a request is still in flight.
func TestProbeIsAbortedAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		server := memredis.Start(t, network, "10.0.0.1:6379", memredis.Options{})
		layout := &movingPrimary{}
		layout.set(server.Address())
		_, run := start(t, network, layout)
		ctx, abort := context.WithCancel(t.Context())
		defer abort()
		probing, end := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			run(ctx, probing)
			close(done)
		}()
		time.Sleep(time.Second)
		server.Stop()
		time.Sleep(12 * time.Millisecond)
		end()
		time.Sleep(200 * time.Millisecond)
		aborted := time.Now()
		abort()
		<-done
		if after := time.Since(aborted); after > 0 {
			t.Errorf("the probe ended %s after the abort", after)
		}
	})
}

// A probe that never runs leaves nothing open.
func TestProbeWithoutRun(t *testing.T) {
	address := serve(t, func(net.Conn) bool { return true })
	files := openFiles(t)
	p, loop := newProbe(t, address)
	for range 2 {
		if err := p.Establish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := openFiles(t); n <= files+1 {
		t.Errorf("%d files are open with a connection, %d were before", n, files)
	}
	for range 2 {
		p.Close()
		loop.Close()
	}
	for i := 0; openFiles(t) > files; i++ { // the server closes its end, too
		if i > 1000 {
			t.Fatalf("%d files are open, %d were before", openFiles(t), files)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func bytewise(text string) (pieces []string) {
	for i := range len(text) {
		pieces = append(pieces, text[i:i+1])
	}
	return pieces
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the open files of a process are not known here")
	}
	return len(list)
}

// probed sends 100 requests per second to a server, and returns what was recorded.
func probed(t *testing.T, address string, length time.Duration) record.Counts {
	t.Helper()
	p, loop := newProbe(t, address)
	ctx, abort := context.WithCancel(t.Context())
	defer abort()
	probing, end := context.WithCancel(ctx)
	time.AfterFunc(length, end)
	loop.Run(ctx, probing)
	loop.Close()
	var sum record.Counts
	for i := range int64(600) { // a slow machine included
		sum.Add(&p.run.Recorder.Close(i).Probe.Counts)
	}
	return sum
}

func newProbe(t *testing.T, address string) (*Prober, *Loop) {
	t.Helper()
	const timeout = time.Minute
	state := &load.State{
		Clock: clock.StartingAt(time.Now()), Timeout: int64(timeout),
		Recorder: interval.New(int64(100*time.Millisecond), 1, 0, 1),
		Routes: route.Routes{Dialer: &dial.Dialer{
			Target: plan.Target{Addresses: []string{address}}, Timeout: timeout, Protocol: 3,
			TCP: redis.DialContext,
		}},
	}
	state.Plan = probePlan()
	p, err := New(state, WholeTarget, "")
	if err != nil {
		t.Fatal(err)
	}
	loop := NewLoop(state, []*Prober{p})
	if err := loop.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(loop.Close)
	return p, loop
}

// serve begins a server that replies to HELLO, and has answer reply to all else, until it returns false.
func serve(t *testing.T, answer func(net.Conn) bool) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				if _, err := resp.ReadValue(in); err != nil {
					return
				}
				if _, err := c.Write([]byte("%1\r\n+proto\r\n:3\r\n")); err != nil {
					return
				}
				for {
					if _, err := resp.ReadValue(in); err != nil || !answer(c) {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}

package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestDialsShareALookup: a hundred concurrent dials share one lookup, and a changed address is dialled soon after.
func TestDialsShareALookup(t *testing.T) {
	var asked atomic.Int64
	var host atomic.Value
	host.Store("10.0.0.1")
	r := NewResolver()
	r.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		asked.Add(1)
		time.Sleep(5 * time.Millisecond)
		return []netip.Addr{netip.MustParseAddr(host.Load().(string))}, nil
	}
	dialled := make(chan string, 200)
	r.Dial = func(_ context.Context, _, address string) (net.Conn, error) {
		dialled <- address
		return nil, errors.New("refused")
	}
	burst := func() {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _, _ = r.TCP(t.Context(), "tcp", "redis:6379") })
		}
		all.Wait()
	}
	burst()
	if n := asked.Load(); n > 5 { // 1, unless the machine stalls for longer than an answer is cached
		t.Errorf("100 dials made %d lookups", n)
	}
	if to := <-dialled; to != "10.0.0.1:6379" {
		t.Errorf("dialled %s", to)
	}
	host.Store("10.0.0.2")
	time.Sleep(2 * answerTTL)
	for len(dialled) > 0 {
		<-dialled
	}
	burst()
	if to := <-dialled; to != "10.0.0.2:6379" {
		t.Errorf("dialled %s after the address changed", to)
	}
}

func TestEveryAddressIsTried(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	r := NewResolver()
	r.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("::ffff:127.0.0.1")}, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c, err := r.TCP(ctx, "tcp", "redis:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TestHangingLookupDoesNotDelayDials: a hanging DNS server does not delay a dial beyond its own timeout.
func TestHangingLookupDoesNotDelayDials(t *testing.T) {
	r := NewResolver()
	r.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) { <-t.Context().Done(); return nil, ctx.Err() }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.TCP(ctx, "tcp", "redis:6379"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	var dial *net.OpError
	r = NewResolver()
	r.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
	if _, err := r.TCP(t.Context(), "tcp", "nobody:6379"); !errors.As(err, &dial) {
		t.Errorf("error %v", err)
	}
}

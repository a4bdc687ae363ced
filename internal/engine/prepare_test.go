package engine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/memnet"
)

// TestPrepareReportsOtherServers: the cause of a failed connection is reported at once if it does not pass, else after
// the default patience.
func TestPrepareReportsOtherServers(t *testing.T) {
	write := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = c.Write([]byte(text)) }
	}
	const dialTimeout = 200 * time.Millisecond
	const patience = 5*time.Second + pauseLast + 5*dialTimeout // the default, and an attempt at each end of it
	for _, tt := range []struct {
		name     string
		serve    func(net.Conn) // nil = no listener
		mode     memnet.Mode
		address  string // "" = virtualAddress
		protocol int
		reason   plan.Reason
		words    string
		takes    time.Duration
	}{
		{
			name:     "a web server",
			serve:    write("HTTP/1.1 400 Bad Request\r\n"),
			protocol: 3,
			reason:   plan.NotRedis,
			words:    "HTTP/1.1 400",
		},
		{
			name:     "garbage",
			serve:    func(c net.Conn) { write("\x00\x01garbage")(c); _ = c.Close() },
			protocol: 3,
			reason:   plan.NotRedis,
			words:    "garbage",
		},
		{
			name:     "nothing in RESP2",
			serve:    write(""),
			protocol: 2,
			reason:   plan.TargetUnreachable,
			words:    virtualAddress + " accepts connections but sends no reply",
			takes:    patience,
		},
		{
			name:     "nothing in RESP3",
			serve:    write(""),
			protocol: 3,
			reason:   plan.TargetUnreachable,
			words:    virtualAddress + " accepts connections but sends no reply",
			takes:    patience,
		},
		{
			name:     "a closed port",
			protocol: 3,
			reason:   plan.TargetUnreachable,
			words:    virtualAddress + " is not ready: ",
			takes:    patience,
		},
		{
			name:     "a black hole",
			mode:     memnet.Swallow,
			protocol: 3,
			reason:   plan.TargetUnreachable,
			words:    "no reply in time; waited 5s for that to pass",
			takes:    patience,
		},
		{
			name:     "no such name",
			address:  "no-such-name.invalid:6379",
			protocol: 3,
			reason:   plan.TargetUnreachable,
			words:    "no-such-name.invalid",
			takes:    patience,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				network := memnet.New()
				network.Set(virtualAddress, tt.mode)
				if tt.serve != nil {
					answering(t, network, tt.serve)
				}
				names := dial.NewResolver()
				names.Dial = network.Dial
				names.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
					return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
				}
				p := testPlan(virtualAddress)
				if tt.address != "" {
					p.Target.Addresses = []string{tt.address}
				}
				p.Client.Protocol, p.Client.DialTimeout = tt.protocol, dialTimeout
				began := time.Now()
				wantReason(t, p, tt.reason, tt.words, WithDialer(names.TCP))
				if took := time.Since(began); took > tt.takes {
					t.Errorf("it took %s, want at most %s", took, tt.takes)
				}
			})
		})
	}
}

// answering listens at virtualAddress, passes every connection to serve and leaves it open.
func answering(t *testing.T, network *memnet.Network, serve func(net.Conn)) {
	t.Helper()
	l, err := network.Listen(virtualAddress)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			serve(c)
		}
	}()
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 120000: "120,000", 1000000: "1,000,000", -1234: "-1,234", -123: "-123",
	} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

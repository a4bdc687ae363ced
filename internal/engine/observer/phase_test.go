package observer

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/memnet"
)

// A server that stalls again and again, and runs for a moment between two stalls, keeps most PINGs waiting, whatever
// the length of its stalls is to the period of the readings: so does a disk with a limit of writes, or a CPU limit. Each
// of a reading's queries waits for the end of a stall, so that readings of a short period follow each other.
func TestPingsAreNotInStepWithAServersStalls(t *testing.T) {
	t.Parallel()
	const runs = time.Millisecond // between two stalls
	for _, every := range []time.Duration{200 * time.Millisecond, time.Second, 10 * time.Second} {
		for _, stall := range []time.Duration{20, 50, 99, 100, 101, 125, 250, 333} {
			stall *= time.Millisecond
			synctest.Test(t, func(t *testing.T) {
				pings := pingsOf(t, stallingServer(t, stall, runs), every, 60)
				if median := pings[len(pings)/2]; median < stall/10 {
					t.Errorf("read each %s, stalls of %s: half of the PINGs took %s or less", every, stall, median)
				}
			})
		}
	}
}

// Of a server that stalls once in each period of the readings, whatever their phases are, as many PINGs wait as it stalls
// for.
func TestPingsMeetStallsOfTheirOwnPeriod(t *testing.T) {
	t.Parallel()
	const every, stall, n = time.Second, 400 * time.Millisecond, 300
	for _, phase := range []time.Duration{0, 100, 250, 400, 600, 750, 900} {
		synctest.Test(t, func(t *testing.T) {
			network := stallingServer(t, stall, every-stall)
			time.Sleep(phase * time.Millisecond)
			met := 0
			for _, took := range pingsOf(t, network, every, n) {
				if took > time.Millisecond {
					met++
				}
			}
			// of a random one five standard deviations: 5 x sqrt(300 x 0.4 x 0.6) = 42
			if met < 78 || met > 162 {
				t.Errorf("%s after a stall: %d of %d PINGs waited, it stalls for 40%% of the time", phase*time.Millisecond, met, n)
			}
		})
	}
}

// pingsOf observes a server for a number of PINGs, and returns how long each took, in ascending order.
func pingsOf(t *testing.T, network *memnet.Network, every time.Duration, n int) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	now := clock.StartingAt(time.Now())
	o := &Observer{
		Clock: &now,
		Routes: &route.Routes{Dialer: &dial.Dialer{
			Target: plan.Target{Addresses: []string{"redis:6379"}}, Timeout: time.Minute, TCP: network.Dial,
		}},
		Timeout: time.Minute,
		Every:   every,
	}
	done := make(chan struct{})
	go func() { defer close(done); o.Run(ctx) }()
	var pings []time.Duration
	for len(pings) < n {
		time.Sleep(10 * time.Millisecond)
		if took := o.TakeRoundTrip(); took > 0 {
			pings = append(pings, time.Duration(took))
		}
	}
	cancel()
	<-done
	slices.Sort(pings)
	return pings
}

// stallingServer replies to what it reads while it runs at once, and to anything else when its stall is over.
func stallingServer(t *testing.T, stall, runs time.Duration) *memnet.Network {
	t.Helper()
	network, began := memnet.New(), time.Now()
	stop, err := network.Serve("redis:6379", func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			command, err := resp.ReadValue(in)
			if err != nil || len(command.Items) == 0 {
				return
			}
			if at := time.Since(began) % (stall + runs); at > runs {
				time.Sleep(stall + runs - at)
			}
			reply := "-ERR unknown command\r\n"
			switch command.Items[0].Text {
			case "PING":
				reply = "+PONG\r\n"
			case "INFO":
				reply = "$10\r\nrun_id:abc\r\n"
			}
			if _, err := io.WriteString(c, reply); err != nil {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	return network
}

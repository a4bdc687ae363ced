package engine

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// multiplexed is a plan of 1,000 requests a second over one connection, each with a timeout of 1 s.
func multiplexed(length time.Duration) *plan.Plan {
	p := bare()
	p.Client.Connections, p.Client.Mode, p.Client.RequestTimeout = 1, plan.Multiplexed, time.Second
	p.Shape = plan.Shape{Rate: 1000, Duration: length}
	return p
}

// A server that stops for 1.05 s answers what it received in the first 50 ms too late, and all the rest in time: that
// is what a client with a shared connection lives through.
func TestTruthALateReplyTimesOutAlone(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		dials := 0
		o := w.during(t, multiplexed(4*time.Second), time.Second, func() {
			dials = w.network.Dials(virtualAddress)
			w.server.Stop()
			time.Sleep(1050 * time.Millisecond)
			w.server.Continue()
		})
		addsUp(t, o)
		truth.Report(t, "late", "multiplexed, replies up to 50 ms late", "50 timeout of 4000, 3950 ok",
			fmt.Sprintf("%d timeout of %d, %d ok", o.sum.Errors[record.ClassTimeout], o.sum.Due, o.sum.OK),
			o.sum.Errors[record.ClassTimeout] == 50 && o.sum.OK == 3950)
		wantGap(t, "load", o.gaps, 999_500*time.Microsecond, 2050*time.Millisecond)
		if dials = w.network.Dials(virtualAddress) - dials; dials > 1 {
			t.Errorf("%d dials", dials)
		}
	})
}

// A shared connection whose server is gone without a word is replaced once it was silent for requestTimeout, if another
// can be made. What was in flight for a shorter time has not timed out: its connection was lost.
func TestASilentSharedConnectionIsReplaced(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		second := memredis.Start(t, w.network, "10.0.0.2:6379", memredis.Options{})
		var primary atomic.Value
		primary.Store(virtualAddress)
		o, _ := duringRun(t, multiplexed(4*time.Second), time.Second, func() {
			w.network.Set(virtualAddress, memnet.Swallow)
			w.server.Stop()
			primary.Store(second.Address())
		}, WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			return w.network.Dial(ctx, network, primary.Load().(string))
		}))
		addsUp(t, o)
		g := onlyGap(t, "load", o.gaps)
		if from, to := time.Duration(g.From),
			time.Duration(g.To); from != 999_500*time.Microsecond || to < 2*time.Second || to > 2020*time.Millisecond {
			t.Errorf("the gap is %s to %s", from, to)
		}
		timeout, reset := o.sum.Errors[record.ClassTimeout], o.sum.Errors[record.ClassReset]
		if timeout > 20 || timeout+reset < 1000 || timeout+reset > 1020 || o.sum.OK+timeout+reset != 4000 {
			t.Errorf("%d timed out, %d were lost: %s", timeout, reset, describe(o))
		}
	})
}

// A server that hangs for several timeouts: each request times out by itself, and replies resume with the server.
func TestAHangOfSeveralTimeouts(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		o := w.during(t, multiplexed(6*time.Second), time.Second, func() {
			w.server.Stop()
			time.Sleep(3 * time.Second)
			w.server.Continue()
		})
		addsUp(t, o)
		g := onlyGap(t, "load", o.gaps)
		if to := time.Duration(g.To); to < 4*time.Second || to > 4200*time.Millisecond {
			t.Errorf("the gap ends at %s", to)
		}
		if o.sum.OK+o.sum.Unknown+o.sum.Fail+o.sum.Dropped != 6000 || o.sum.OK < 2000 {
			t.Errorf("%s", describe(o))
		}
	})
}

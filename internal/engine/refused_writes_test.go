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
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// NOREPLICAS is a class of its own. The server is the right one and its connections stay: no client replaces them.
func TestTruthNoReplicasIsNotReadOnly(t *testing.T) {
	virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Workload.Commands = p.Workload.Commands[:1]
		p.Shape, p.Info = plan.Shape{Rate: 1000, Duration: 2 * time.Second}, 0
		dials := 0
		o := w.during(t, p, 500*time.Millisecond, func() {
			w.server.Answer("SET", "-NOREPLICAS Not enough good replicas to write.")
			before := w.network.Dials(virtualAddress)
			time.Sleep(time.Second)
			w.server.Answer("SET", "")
			dials = w.network.Dials(virtualAddress) - before
		})
		addsUp(t, o)
		class := func(name string) (n uint64) {
			for c, count := range o.sum.Errors {
				if record.Class(c).String() == name {
					n += count
				}
			}
			return n
		}
		truth.Report(t, "T19", "NOREPLICAS for 1 s at 1,000/s", "1000 noreplicas, 0 readonly, 0 dials",
			fmt.Sprintf("%d noreplicas, %d readonly, %d dials", class("noreplicas"), class("readonly"), dials),
			class("noreplicas") == 1000 && class("readonly") == 0 && dials == 0)
	})
}

// A request that a demoted server refused is retried at the new primary: its connection is replaced before.
func TestTruthReadOnlyIsRetriedElsewhere(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Dedicated, plan.Multiplexed} {
		t.Run(string(mode), func(t *testing.T) {
			virtually(t, 10*time.Microsecond, func(t *testing.T, w *world) {
				second := memredis.Start(t, w.network, "10.0.0.2:6379", memredis.Options{Cost: 10 * time.Microsecond})
				var primary atomic.Value
				primary.Store(virtualAddress)
				p := bare()
				p.Workload.Commands = p.Workload.Commands[:1]
				p.Client.Connections, p.Client.Mode, p.Client.Retries = 1, mode, 3
				p.Shape = plan.Shape{Rate: 1000, Duration: 2 * time.Second}
				o, _ := duringRun(t, p, time.Second, func() {
					primary.Store(second.Address())
					w.server.SetReadOnly(true)
				}, WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
					return w.network.Dial(ctx, network, primary.Load().(string))
				}))
				addsUp(t, o)
				truth.Report(t, "T19", "READONLY with 3 retries, "+string(mode), "0 of 2000 failed",
					fmt.Sprintf("%d of %d failed", o.sum.Fail, o.sum.Due), o.sum.Fail == 0 && o.sum.Due == 2000)
			})
		})
	}
}

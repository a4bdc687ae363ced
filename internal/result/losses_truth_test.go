package result_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
	"github.com/redquake/redquake/internal/testing/truth"
)

// The first fault, at 20 s, restarts Redis without its data: every write that was acknowledged before is lost. The
// second one does nothing.
func TestTruthLossesOfTwoFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate, share float64
		later       time.Duration
	}{
		{100, 0.01, 10 * time.Second},
		{100, 0.01, 60 * time.Second},
		{200, 0.01, 3 * time.Second},
		{25, 0.01, 40 * time.Second},
		{1000, 0.1, 15 * time.Second},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const first = 20 * time.Second
				l := ledgerOf(t, c.rate, c.share, first, first+c.later+20*time.Second)
				acted := []summary.Window{
					{From: first, To: first + 11*time.Second},
					{From: first + c.later, To: first + c.later + 11*time.Second},
				}
				all := result.Count{AtLeast: l.Lost, AtMost: l.Lost}
				one, other := result.LossesOf(0, acted, l.Losses, all).Count, result.LossesOf(1, acted, l.Losses, all).Count
				truth.Report(t, "V6", fmt.Sprintf("%v writes/s, the first of two faults, %s apart, loses all: lost writes of each",
					c.rate*c.share, c.later), "all and none",
					fmt.Sprintf("%v and %v of %d", one, other, l.Lost),
					l.Lost >= uint64(c.rate*c.share*15) && one == all && other == result.Count{})
			})
		})
	}
}

// ledgerOf is the ledger of a load during which the server restarts without its data.
func ledgerOf(t *testing.T, rate, share float64, at, length time.Duration) *record.Ledger {
	t.Helper()
	const address = "redis:6379"
	network := memnet.New()
	server := memredis.Start(t, network, address, memredis.Options{})
	p := &plan.Plan{
		Run: "truth", Pods: 1, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{Connections: 20, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: time.Second, Protocol: 3},
		Shape:  plan.Shape{Rate: rate, Duration: length},
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}},
			Keyspace: plan.Keyspace{Prefix: "truth:", Keys: 10, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 8, MaxBytes: 8},
		},
		Verify: &plan.Verify{Share: share},
	}
	runner, err := engine.New(p, 0, engine.WithDialer(network.Dial))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := runner.Prepare(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(50 * time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx, start, func(*record.Interval) {}) }()
	time.Sleep(time.Until(start.Add(at)))
	server.Restart()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	l, err := runner.Verify(ctx, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

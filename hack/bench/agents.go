package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

const agentsCommand = "agents"

// variants is how many different intervals the simulated agents deliver in turn.
const variants = 64

var collectOps = []string{"set", "get"}

// order is what the collecting process writes to the standard input of the agents' process. The agents run until it is closed.
type order struct {
	Run         string
	Agents      int
	Step        time.Duration
	PerInterval int // requests in an agent's interval
	Credentials agent.Credentials
}

// runAgents serves simulated agents: the real agent with its HTTPS server, and a simulated load.
func runAgents(ctx context.Context, args []string) error {
	if err := flag.NewFlagSet(agentsCommand, flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	input := json.NewDecoder(os.Stdin)
	var o order
	if err := input.Decode(&o); err != nil {
		return err
	}
	certificate, err := o.Credentials.Certificate()
	if err != nil {
		return err
	}
	made := madeUp(o.PerInterval, o.Step)
	var served sync.WaitGroup
	addresses := make([]string, o.Agents)
	for i := range addresses {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses[i] = listener.Addr().String()
		served.Go(func() {
			_ = agent.Serve(ctx, agent.Config{ // ends with ctx: nothing is released
				Plan: &plan.Plan{Run: o.Run, Pods: o.Agents, Interval: o.Step}, Pod: i, Runner: &simulated{pod: i, step: o.Step, made: made},
				Token: o.Credentials.Token, Certificate: certificate, Listener: listener, Drain: time.Millisecond,
				Logger: slog.New(slog.DiscardHandler),
			})
		})
	}
	if err := json.NewEncoder(os.Stdout).Encode(addresses); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	stop()
	served.Wait()
	return err
}

// madeUp returns the intervals that agents deliver: one SET to nine GETs, latencies around 300 us with a long tail, a probe of 100/s.
func madeUp(requests int, step time.Duration) []record.Interval {
	rng := rand.New(rand.NewPCG(1, 1))
	fill := func(op *record.Op, n int) {
		var latency record.Histogram
		for range n {
			latency.Record(int64(300e3 * math.Exp(0.5*rng.NormFloat64())))
		}
		op.OK, op.Sent, op.Due = uint64(n), uint64(n), uint64(n)
		op.BytesOut, op.BytesIn = uint64(70*n), uint64(20*n)
		op.Latency = latency.AppendTo(nil)
	}
	made := make([]record.Interval, variants)
	for i := range made {
		n := requests*3/4 + rng.IntN(requests/2+1)
		iv := &made[i]
		*iv = record.Interval{Pods: 1, Ops: make([]record.Op, len(collectOps)), FirstError: -1, LastError: -1, Connections: 50}
		fill(&iv.Ops[0], n/10)
		fill(&iv.Ops[1], n-n/10)
		fill(&iv.Probe, int(100*step/time.Second))
	}
	return made
}

// simulated delivers simulated intervals when they are over, until it is stopped.
type simulated struct {
	pod  int
	step time.Duration
	made []record.Interval
}

// Prepare has nothing to do.
func (*simulated) Prepare(context.Context, func(string)) error { return nil }

// Server is unknown.
func (*simulated) Server() *record.Server { return nil }

// Run delivers.
func (s *simulated) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	for index := int64(0); ; index++ {
		timer := time.NewTimer(time.Until(start.Add(time.Duration(index+1) * s.step)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		iv := s.made[variant(s.pod, index)]
		iv.Index = index
		iv.FirstOK = index*int64(s.step) + int64(s.pod)
		iv.LastOK = iv.FirstOK + int64(s.step)*9/10
		cpu := 0.1 * float64(iv.LastOK) / float64(time.Second)
		iv.Agents = []record.AgentUse{{At: iv.LastOK, CPUSeconds: cpu, CPULimit: 1, RoundTrip: 200e3, Memory: 30 << 20}}
		sink(&iv)
	}
}

// variant is which of the made-up intervals a pod delivers at an index.
func variant(pod int, index int64) int { return int((int64(pod)*7 + index) % variants) }

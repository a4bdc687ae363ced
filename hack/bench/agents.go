package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

const agentsCommand = "agents"

// variants is how many different intervals the simulated agents deliver in turn.
const variants = 64

// opNames names the operations of the simulated load.
func opNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("command-", i)
	}
	return names
}

// order is what the collecting process writes to the standard input of the agents' process. The
// agents run until it is closed.
type order struct {
	Run         string
	Agents      int
	Step        time.Duration
	PerInterval int // requests in an agent's interval
	Ops         int // operations of the load

	Speed float64 // how much faster than in real time the agents deliver; 0 = 1
	// each number after the order is that of an interval up to which the agents may deliver
	Paced            bool
	Length           time.Duration // of the load; 0 = until the agents are stopped
	DownFrom, DownTo time.Duration // when nothing succeeds, since the start

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
	made, reach := madeUp(o), new(atomic.Int64)
	if !o.Paced {
		reach.Store(math.MaxInt64)
	}
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
				Plan:        &plan.Plan{Run: o.Run, Pods: o.Agents, Interval: o.Step},
				Pod:         i,
				Runner:      &simulated{order: o, pod: i, made: made, reach: reach},
				Token:       o.Credentials.Token,
				Certificate: certificate,
				Listener:    listener,
				Drain:       time.Millisecond,
				Logger:      slog.New(slog.DiscardHandler),
			})
		})
	}
	if err := json.NewEncoder(os.Stdout).Encode(addresses); err != nil {
		return err
	}
	for err == nil {
		var index int64
		if err = input.Decode(&index); err == nil {
			reach.Store(index)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	stop()
	served.Wait()
	return err
}

// madeUp returns the intervals that agents deliver: equally many requests of each operation,
// latencies around 300 us with a long tail, and a tenth as many of the probe.
func madeUp(o order) []record.Interval {
	rng := rand.New(rand.NewPCG(1, 1))
	fill := func(op *record.Op, n int) {
		var latency histogram.Histogram
		for range n {
			latency.Record(int64(300e3 * math.Exp(0.5*rng.NormFloat64())))
		}
		op.OK, op.Sent, op.Due = uint64(n), uint64(n), uint64(n)
		op.BytesOut, op.BytesIn = uint64(70*n), uint64(20*n)
		op.Latency = latency.AppendTo(nil)
	}
	made := make([]record.Interval, variants)
	for i := range made {
		n := o.PerInterval*3/4 + rng.IntN(o.PerInterval/2+1)
		iv := &made[i]
		*iv = record.Interval{
			Pods:        1,
			Ops:         make([]record.Op, o.Ops),
			FirstError:  -1,
			LastError:   -1,
			Connections: 50,
		}
		for k := range iv.Ops {
			fill(&iv.Ops[k], n*(k+1)/o.Ops-n*k/o.Ops)
		}
		fill(&iv.Probe, max(1, o.PerInterval/10))
	}
	return made
}

// simulated delivers simulated intervals when they are over, until it is stopped.
type simulated struct {
	order
	pod   int
	made  []record.Interval
	reach *atomic.Int64
}

// Prepare has nothing to do.
func (*simulated) Prepare(context.Context, func(string)) error {
	return nil
}

// Server is unknown.
func (*simulated) Server() *record.Server {
	return nil
}

// Run delivers.
func (s *simulated) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	step, speed := int64(s.Step), cmp.Or(s.Speed, 1)
	for index := int64(0); s.Length == 0 || index < int64(s.Length)/step; index++ {
		over := start.Add(time.Duration(float64((index+1)*step) / speed))
		for left := time.Until(over); left > 0 || index >= s.reach.Load(); left = time.Until(over) {
			if err := pause(ctx, max(left, time.Millisecond)); err != nil {
				return err
			}
		}
		iv := s.interval(index)
		sink(&iv)
	}
	return nil
}

// interval is what the pod delivers at an index.
func (s *simulated) interval(index int64) record.Interval {
	begin, step := index*int64(s.Step), int64(s.Step)
	iv := s.made[variant(s.pod, index)]
	if begin >= int64(s.DownFrom) && begin < int64(s.DownTo) {
		iv = record.Interval{
			Pods:       1,
			Ops:        make([]record.Op, s.Ops),
			FirstOK:    -1,
			LastOK:     -1,
			FirstError: begin,
			LastError:  begin + step - 1,
		}
		for k := range iv.Ops {
			iv.Ops[k].Sent, iv.Ops[k].Fail = 1, 1
			iv.Ops[k].Errors[record.ClassRefused] = 1
		}
	} else {
		iv.FirstOK, iv.LastOK = begin, begin+step*9/10
		if s.DownTo > 0 && begin == int64(s.DownTo) {
			iv.Gaps = []record.Gap{{From: int64(s.DownFrom) - step/10, To: begin}}
		}
	}
	iv.Index = index
	cpu := 0.1 * float64(begin+step) / float64(time.Second)
	iv.Agents = []record.AgentUse{
		{At: begin + step, CPUSeconds: cpu, CPULimit: 1, RoundTrip: 200e3, Memory: 30 << 20},
	}
	if s.pod == 0 && begin%int64(time.Second) == 0 {
		iv.Servers = []record.Server{
			{At: begin, Address: "redis:6379", RunID: "run", Version: "8.0.0", CommandsProcessed: index},
		}
	}
	return iv
}

// variant is which of the made-up intervals a pod delivers at an index.
func variant(pod int, index int64) int {
	return int((int64(pod)*7 + index) % variants)
}

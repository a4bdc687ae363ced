package summary

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// queueing is an open loop and a server that answers its requests one by one, in the order in which they were sent.
type queueing struct {
	due, takes   []time.Duration // of each request: when it is due, and how long the server takes for it
	pauses       []idle          // in which the load generator does not run
	pause, every time.Duration
	busy         float64
}

// drawQueueing draws one of 20 s whose server is busy for two thirds of the time at most.
func drawQueueing(random *rand.Rand) *queueing {
	const length = 20 * time.Second
	between := func(a, b float64) float64 { return a + (b-a)*random.Float64() }
	q := &queueing{busy: between(0.05, 0.66)}
	takes := between(50e3, 500e3)
	evenly, slow := random.IntN(2) == 0, []float64{0, 0.01, 0.05}[random.IntN(3)]
	for at := 0.0; at < float64(length); {
		one := takes * between(0.8, 1.2)
		if random.Float64() < slow {
			one *= 5
		}
		q.due, q.takes = append(q.due, time.Duration(at)), append(q.takes, time.Duration(one))
		gap := takes * (1 + 4*slow) / q.busy
		if !evenly {
			gap *= random.ExpFloat64()
		}
		at += gap
	}
	q.every = time.Duration(between(2e6, 200e6))
	q.pause = time.Duration(float64(q.every) * between(0.002, 0.3))
	for at := time.Duration(0); at < length; at += time.Duration(between(0.5, 1.5) * float64(q.every)) {
		one := time.Duration(between(0.5, 1.5) * float64(q.pause))
		q.pauses = append(q.pauses, idle{at, at + one, one})
	}
	return q
}

// answered returns when each request was sent and answered.
func (q *queueing) answered(pauses []idle) (sent, answered []time.Duration) {
	free, next := time.Duration(0), 0
	for i, at := range q.due {
		for next < len(pauses) && pauses[next].to <= at {
			next++
		}
		if next < len(pauses) && pauses[next].from <= at {
			at = pauses[next].to
		}
		if i > 0 {
			at = max(at, sent[i-1])
		}
		free = max(free, at) + q.takes[i]
		sent, answered = append(sent, at), append(answered, free)
	}
	return sent, answered
}

// recorded is what the load generator records: a wait of 5 ms is a stall, too.
func (q *queueing) recorded(t *testing.T, sent, answered []time.Duration) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
	end := int(answered[len(answered)-1]/step) + 1
	service, latency, lag := make([]histogram.Histogram, end), make([]histogram.Histogram, end), make([]time.Duration, end)
	for i := range q.due {
		at := int(answered[i] / step)
		service[at].Record(int64(answered[i] - sent[i]))
		latency[at].Record(int64(answered[i] - q.due[i]))
		lag[int(sent[i]/step)] = max(lag[int(sent[i]/step)], sent[i]-q.due[i])
	}
	waited, next := time.Duration(0), 0
	for i := range end {
		iv := &record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, 1), FirstOK: int64(i) * int64(step),
			LastOK: int64(i+1)*int64(step) - 1, FirstError: -1, LastError: -1, MaxLag: int64(lag[i]),
		}
		op := &iv.Ops[0]
		op.Latency, op.Service = latency[i].AppendTo(nil), service[i].AppendTo(nil)
		op.OK = op.Latency.Count()
		op.Sent = op.OK
		at := time.Duration(i+1) * step
		for ; next < len(q.pauses) && q.pauses[next].to <= at; next++ {
			waited += q.pauses[next].length
			if q.pauses[next].length >= 5*time.Millisecond {
				iv.Stalls = append(iv.Stalls, record.Stall{From: int64(q.pauses[next].from), To: int64(q.pauses[next].to)})
			}
		}
		if at%time.Second == 0 {
			iv.Agents = []record.AgentUse{
				{At: int64(at), BusyThreads: 1, CPUSeconds: 0.1 * at.Seconds(), WaitedSeconds: waited.Seconds()},
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

// What latencies are at least without the waits of the load generator is no more than they are without them: loads at
// random, against the same ones whose generator ran all the time.
func TestRandomQueuesBehindWaits(t *testing.T) {
	t.Parallel()
	told := 0
	for seed := range uint64(100) {
		q := drawQueueing(rand.New(rand.NewPCG(seed, 35)))
		sent, answered := q.answered(q.pauses)
		stalls := StallsTo(q.recorded(t, sent, answered), 0, 20*time.Second, nil)
		if stalls == nil {
			t.Fatalf("seed %d: no waits", seed)
		}
		sent, answered = q.answered(nil)
		var service, latency []time.Duration
		for i := range q.due {
			service, latency = append(service, answered[i]-sent[i]), append(latency, answered[i]-q.due[i])
		}
		slices.Sort(service)
		slices.Sort(latency)
		for _, part := range []struct {
			name  string
			least time.Duration
			all   []time.Duration
			q     float64
		}{
			{"p50 from the send", stalls.Service.P50, service, 0.5},
			{"p90 from the send", stalls.Service.P90, service, 0.9},
			{"p99 from the send", stalls.Service.P99, service, 0.99},
			{"p99.9 from the send", stalls.Service.P999, service, 0.999},
			{"p50", stalls.Latency.P50, latency, 0.5},
			{"p90", stalls.Latency.P90, latency, 0.9},
			{"p99", stalls.Latency.P99, latency, 0.99},
			{"p99.9", stalls.Latency.P999, latency, 0.999},
		} {
			truth := part.all[int(part.q*float64(len(part.all)-1))]
			if part.least > truth*106/100 { // the resolution of a histogram, and of the ranks
				t.Errorf("seed %d: %s is %s at least, and %s without the waits of %s each %s (server busy for %.2f)", seed,
					part.name, part.least, truth, q.pause, q.every, q.busy)
			}
			if part.q == 0.99 && part.least > truth/2 {
				told++
			}
		}
	}
	if t.Logf("%d of 200 99th percentiles are known within a factor of 2", told); told < 10 {
		t.Error("too few")
	}
}

package loop

import (
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/builders"
	"github.com/redquake/redquake/internal/testing/tcptest"
)

// echoing starts a server that answers every size bytes with reply, and returns its address.
func echoing(t testing.TB, size int, reply string) string {
	t.Helper()
	return tcptest.Listen(t, func(c net.Conn) {
		go func() {
			in, out := make([]byte, 64<<10), []byte(strings.Repeat(reply, 64<<10/size))
			for have := 0; ; {
				n, err := c.Read(in)
				if err != nil {
					return
				}
				have += n
				if _, err := c.Write(out[:have/size*len(reply)]); err != nil {
					return
				}
				have %= size
			}
		}()
	})
}

// batches is a demand of one batch after the other.
type batches struct {
	loop              *Loop
	size, left, owing int
	turn              pace.Turn
}

func (b *batches) issue(int64) int64 {
	for b.owing == 0 && b.left > 0 {
		b.left--
		b.owing = b.size
		for range b.size {
			b.loop.enqueue(b.loop.source.Pick(), 0, -1, &b.turn)
		}
	}
	return 1 << 62
}

func (b *batches) ended(*request, int64) { b.owing-- }
func (b *batches) over(int64) bool       { return b.owing == 0 && b.left == 0 }

// stateOf returns the state of a load of one pod by a plan, which has begun. Its outcomes are all counted in interval
// 0.
func stateOf(t testing.TB, p *plan.Plan) *load.State {
	t.Helper()
	w, err := workload.New(&p.Workload)
	if err != nil {
		t.Fatal(err)
	}
	s := &load.State{
		Clock:    clock.Clock{Start: time.Now()},
		Timeout:  int64(p.Client.RequestTimeout),
		Redis:    w,
		Parts:    gaps.PartsOf(p.ReadOnly()),
		Recorder: interval.New(int64(p.Interval), len(w.Operations()), len(p.Tallies()), 1),
		Routes: route.Routes{
			Dialer: &dial.Dialer{
				Target:  p.Target,
				Timeout: p.Client.DialTimeout,
				TCP:     dial.NewResolver().TCP,
				Hedges:  make(chan struct{}, 256),
			},
		},
	}
	s.Plan = p
	s.Length = int64(p.Shape.Length())
	s.Workload = w
	s.Operations = w.Operations()
	s.Users = plan.NewSchedule(p.Shape)
	s.Thresholds = gaps.NewThresholds(s.Parts.Count, record.MaxShards, 2*gaps.UnknownPace)
	s.Budget.Left.Store(math.MaxInt64)
	s.Recorder.SetLast(0)
	return s
}

// served is a loop with one connection to address, in a run that has begun, whose demand is count batches.
func served(t testing.TB, p *plan.Plan, address string, count int) *Loop {
	t.Helper()
	p.Target.Addresses, p.Client.Connections = []string{address}, 1
	depth := p.Client.Pipeline
	l := New(stateOf(t, p), 0, 1, 1, func(int64) int { return depth })
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l.demand = &batches{loop: l, size: p.Client.Pipeline, left: count}
	l.conns[0].Adopt(dial.Line{Conn: c, Address: address})
	return l
}

// fixedPlan sends requests that are all of one size.
func fixedPlan(pipeline int) (*plan.Plan, int) {
	p := builders.Plan()
	p.Pods, p.Client.Pipeline, p.Workload.Keyspace.Keys = 1, pipeline, 1
	return p, len(resp.AppendCommand(nil, "SET", "rq:0", strings.Repeat("x", 32)))
}

func TestEveryRequestIsSettled(t *testing.T) {
	timeout := func(err error) bool { return dial.LossClass(err) == record.ClassTimeout }
	if !timeout(os.ErrDeadlineExceeded) || timeout(io.EOF) || dial.LossClass(syscall.ECONNRESET) != record.ClassReset ||
		dial.LossClass(fmt.Errorf("%w: x", resp.ErrProtocol)) != record.ClassProtocol {
		t.Error("losses are misnamed")
	}
	tests := []struct {
		name, reply       string
		ok, fail, unknown uint64
		class             record.Class
		linked            bool
	}{
		{name: "ok", reply: "+OK\r\n", ok: 4, linked: true},
		{name: "null", reply: "$-1\r\n", ok: 4, linked: true},
		{name: "errors", reply: "-READONLY no\r\n", fail: 4, class: record.ClassReadOnly, linked: true},
		{name: "garbage", reply: "what?\r\n", unknown: 4, class: record.ClassProtocol},
		{name: "two replies to each", reply: "+OK\r\n+OK\r\n", ok: 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, size := fixedPlan(4)
			l := served(t, p, echoing(t, size, tt.reply), 1)
			l.Serve(t.Context())
			op := l.run.Recorder.Close(0).Ops[0]
			if op.Sent != 4 || op.OK != tt.ok || op.Fail != tt.fail || op.Unknown != tt.unknown ||
				op.Errors[tt.class] != tt.fail+tt.unknown {
				t.Errorf("%+v", op.Counts)
			}
			if l.run.Connections.Load() != 0 || l.inFlight != 0 || l.queued != 0 {
				t.Errorf("%d connections, %d in flight, %d queued are left", l.run.Connections.Load(), l.inFlight, l.queued)
			}
			if op.BytesOut != uint64(4*size) {
				t.Errorf("%d bytes out, want %d", op.BytesOut, 4*size)
			}
		})
	}
}

// TestRequestsExpire: the loop breaks a connection whose server is silent; the requests are unknown, with the time they
// waited.
func TestRequestsExpire(t *testing.T) {
	p, _ := fixedPlan(2)
	p.Client.RequestTimeout = 30 * time.Millisecond
	l := served(t, p, echoing(t, 1<<15, "+OK\r\n"), 1)
	l.Serve(t.Context())
	op := l.run.Recorder.Close(0).Ops[0]
	if op.Unknown != 2 || op.Errors[record.ClassTimeout] != 2 {
		t.Errorf("%+v", op.Counts)
	}
	if waited := op.Waited.Max(); waited < 30*time.Millisecond || waited > time.Second {
		t.Errorf("they waited %s", waited)
	}
}

// TestLateReplyIsUnknown: a reply after the request timeout is no success, even if it arrives before the loop checks
// the timeout.
func TestLateReplyIsUnknown(t *testing.T) {
	p, size := fixedPlan(1)
	l := served(t, p, echoing(t, size, "+OK\r\n"), 1)
	l.run.Timeout, l.scanEvery = 1, int64(time.Hour)
	l.Serve(t.Context())
	op := l.run.Recorder.Close(0).Ops[0]
	if op.OK != 0 || op.Unknown != 1 || op.Errors[record.ClassTimeout] != 1 {
		t.Errorf("%+v", op.Counts)
	}
}

// TestSignsOfLifeEndAnOutage: the server greeted a connection, or replied too late, and the client sent its next
// request only later: the success of that request could have been had so much sooner.
func TestSignsOfLifeEndAnOutage(t *testing.T) {
	p, _ := fixedPlan(1)
	l := served(t, p, echoing(t, 1, ""), 0)
	l.run.Timeout = 1000
	c := l.conns[0]
	reply := func(kind resp.Kind, sent, at int64) (early int64) {
		l.receipts = append(l.receipts[:0], gaps.Receipt{})
		l.partial, l.partialEnd = l.stripe.Lock(at)
		defer l.stripe.Unlock()
		l.settle(c, &request{sent: sent, reply: resp.Reply{Kind: kind}}, at, at)
		return l.receipts[len(l.receipts)-1].Early
	}
	c.alive = 500
	if early := reply(resp.OK, 800, 810); early != 510 {
		t.Errorf("the first success after a greeting can have arrived since %d, want 510", early)
	}
	if early := reply(resp.OK, 900, 910); early != 0 {
		t.Errorf("the second success can have arrived since %d, want 0 for no earlier", early)
	}
	c.alive = 1000
	if early := reply(resp.OK, 1001, 1900); early != 1899 {
		t.Errorf("a success for which a request waited can have arrived since %d, want 1899", early)
	}
	reply(resp.OK, 2000, 3500) // too late
	if early := reply(resp.OK, 3700, 3720); early != 3520 {
		t.Errorf("the success after a late reply can have arrived since %d, want 3520", early)
	}
	c.alive = 4000
	reply(resp.Error, 4100, 4110)
	if early := reply(resp.OK, 4900, 4910); early != 0 {
		t.Errorf("the success after an error can have arrived since %d, want 0 for no earlier", early)
	}
}

// once is a workload with one round trip, whose replies it counts.
type once struct{ workload.Follower }

func (once) Next(dst []byte, _ *workload.Request, _ []resp.Value, tally []uint64) ([]byte, int) {
	tally[0]++
	return dst, 0
}

// TestTalliesFollowTheOutcome: what is read after the end of an interval, but arrived in it, counts there, as outcome
// and as tally.
func TestTalliesFollowTheOutcome(t *testing.T) {
	p, _ := fixedPlan(1)
	l := served(t, p, echoing(t, 1, ""), 0)
	step := int64(p.Interval)
	l.run.Recorder = interval.New(step, 1, 1, 1)
	l.stripe, l.follower = l.run.Recorder.Stripes[0], once{}
	l.partial, l.partialEnd = l.stripe.Lock(step + 1)
	l.conns[0].finishRound(&request{follows: true, sent: step - 2}, nil, step-1, step-1)
	l.recordBatch()
	l.stripe.Unlock()
	if iv := l.run.Recorder.Close(0); iv.Ops[0].OK != 1 || iv.Tallies[0] != 1 {
		t.Errorf("%d successes and tallies %d, want one of each", iv.Ops[0].OK, iv.Tallies)
	}
}

// TestLoopAllocatesNothing: BenchmarkLoop, with its count.
func TestLoopAllocatesNothing(t *testing.T) {
	for _, pipeline := range []int{1, 16} {
		p, size := fixedPlan(pipeline)
		l := served(t, p, echoing(t, size, "+OK\r\n"), 0)
		const rounds = 20_000
		l.demand.(*batches).left = rounds
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.Serve(t.Context())
		runtime.ReadMemStats(&after)
		// The queues and buffers grow once, and the dials allocate.
		if allocated := after.Mallocs - before.Mallocs; allocated > rounds/20 {
			t.Errorf("pipeline %d: %d allocations for %d batches", pipeline, allocated, rounds)
		}
	}
}

// BenchmarkLoop is a request through the loop, to a server in the same process and back.
func BenchmarkLoop(b *testing.B) {
	for _, pipeline := range []int{1, 16} {
		b.Run(fmt.Sprintf("pipeline%d", pipeline), func(b *testing.B) {
			p, size := fixedPlan(pipeline)
			l := served(b, p, echoing(b, size, "+OK\r\n"), 0)
			demand := l.demand.(*batches)
			demand.left = b.N
			b.ReportAllocs()
			b.ResetTimer()
			l.Serve(b.Context())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/request")
		})
	}
}

// Sentinels or nodes may announce another primary during the preparation of the load.
func TestNudgeBeforeTheLoopIsOpen(t *testing.T) {
	for _, portable := range []bool{false, true} {
		l := &Loop{run: &load.State{System: socket.System{Portable: portable}}}
		l.Nudge()
		if err := l.Open(); err != nil {
			t.Fatal(err)
		}
		defer l.poll.Close()
		l.Nudge()
		began := time.Now()
		l.poll.Wait(0, int64(2*time.Minute))
		if took := time.Since(began); took > time.Minute {
			t.Errorf("portable %v: an open loop slept for %s though it was woken", portable, took)
		}
	}
}

// TestPatience: a loop leaves replies unread only as long as nothing depends on when it reads them.
func TestPatience(t *testing.T) {
	p, _ := fixedPlan(1)
	p.Shape = plan.Shape{Rate: 10_000, Duration: time.Minute}
	const now, soon = int64(time.Second), int64(time.Second + 500*time.Microsecond)
	for name, c := range map[string]struct {
		change func(*Loop)
		next   int64
		want   bool
	}{
		"a request is due soon":      {func(*Loop) {}, soon, true},
		"none is due soon":           {func(*Loop) {}, now + int64(time.Millisecond), false},
		"one waits for a connection": {func(l *Loop) { l.queued = 1 }, soon, false},
		"the kernel stamps nothing":  {func(l *Loop) { l.stamped = false }, soon, false},
		"another goroutine reads":    {func(l *Loop) { l.pumped = true }, soon, false},
		"replies share a stamp":      {func(l *Loop) { l.multiplexed = true }, soon, false},
		"a reply leads to another":   {func(l *Loop) { l.follower = once{} }, soon, false},
		"a reply continues later":    {func(l *Loop) { l.addedLatency = 1 }, soon, false},
		"more may be ready":          {func(l *Loop) { l.look.full = true }, soon, false},
		"something needs it":         {func(l *Loop) { l.eagerUntil = now + 1 }, soon, false},
		"users wait for replies":     {func(l *Loop) { l.demand = newClosedLoop(l, 0, 1) }, soon, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := stateOf(t, p)
			state.Pacer.Store(pace.NewPacer(p, 0))
			l := New(state, 0, 1, 1, func(int64) int { return 1 })
			l.look.entered, l.stamped = now, true
			c.change(l)
			if got := l.patient(c.next); got != c.want {
				t.Errorf("patient is %v, want %v", got, c.want)
			}
		})
	}
}

// Unix sockets have no stamps, for example.
func TestWhatIsReadTellsWhetherTheKernelStamps(t *testing.T) {
	p, _ := fixedPlan(1)
	l := served(t, p, echoing(t, 1, ""), 0)
	for _, c := range []struct {
		stamp int64
		want  bool
	}{{time.Now().UnixNano() - 1000, true}, {0, false}, {time.Now().UnixNano(), true}} {
		l.at, l.read = l.run.Now(), true
		l.look.ReadOffset(&l.run.Clock, l.at)
		if l.conns[0].reception(c.stamp); l.stamped != c.want {
			t.Errorf("after a read with the stamp %d the kernel stamps: %v, want %v", c.stamp, l.stamped, c.want)
		}
	}
}

// After the end of the run a loop waits for requests in flight without a deadline in the past, which would make it
// spin.
func TestUsersDoNotSpinAfterTheEnd(t *testing.T) {
	p, _ := fixedPlan(1)
	p.Shape = plan.Shape{Users: 1, Duration: time.Second}
	l := New(stateOf(t, p), 0, 1, 1, func(int64) int { return 1 })
	l.at = l.run.Length
	if next := l.demand.issue(l.at); next <= l.at {
		t.Errorf("at the end the next turn of the users is at %s, that is immediately", time.Duration(next))
	}
}

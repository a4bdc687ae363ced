package gaps

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/truth"
)

const ms = int64(time.Millisecond)

// testLogs returns the gap logs of clients, as sources of a merge.
func testLogs(clients int, threshold int64) ([]*Logs, Merge) {
	t := NewThresholds(1, 0, threshold)
	logs, merge := make([]*Logs, clients), Merge{}
	for i := range logs {
		g := NewLogs(t, false)
		logs[i] = &g
		merge = append(merge, Source{Lock: new(sync.Mutex), Logs: &g, Settled: func() int64 { return clock.Never }})
	}
	return logs, merge
}

func loadLog(g *Logs) *Log { return &g.parts[0] }

// exactly is a success whose arrival is known exactly.
func exactly(at int64) Receipt { return Receipt{Hi: at, Lo: at, Surely: at, OK: 1} }

func TestGapLog(t *testing.T) {
	logs, merge := testLogs(1, 10*ms)
	g := logs[0]
	g.Waiting(0, 1)
	for _, at := range []int64{ms, 11 * ms, 22 * ms, 5 * ms, 23 * ms, 150 * ms} {
		g.Add([]Receipt{exactly(at)})
		g.Waiting(at, 1)
	}
	// 10 ms is not over the threshold, 11 is; a success that is reported late begins no gap.
	if diff := cmp.Diff([]record.Gap{{From: 11 * ms, To: 22 * ms}},
		merge.gaps(loadLog, 100*ms, 100*ms, false)); diff != "" {
		t.Errorf("gaps that ended before 100 ms (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]record.Gap{{From: 23 * ms, To: 150 * ms}},
		merge.gaps(loadLog, 200*ms, 200*ms, false)); diff != "" {
		t.Errorf("gaps that ended before 200 ms (-want +got):\n%s", diff)
	}
	if got := merge.gaps(loadLog, clock.Never, 155*ms, true); len(got) != 0 {
		t.Errorf("a gap is returned twice, or 5 ms are an open gap: %v", got)
	}
	if diff := cmp.Diff([]record.Gap{{From: 150 * ms, To: 200 * ms, Open: true}},
		merge.gaps(loadLog, clock.Never, 200*ms, true)); diff != "" {
		t.Errorf("open gap (-want +got):\n%s", diff)
	}
}

// An outage may go on behind replies that the network had held back: right behind a gap, one is recorded that is
// shorter than twice the mean time between successes, if a request waited in it. Nowhere else.
func TestGapThatGoesOn(t *testing.T) {
	logs, merge := testLogs(1, 80*ms)
	g := logs[0]
	for _, at := range []int64{40 * ms, 70 * ms, 110 * ms, 240 * ms, 270 * ms, 310 * ms, 350 * ms, 390 * ms} {
		one := exactly(at)
		one.Since = at - 30*ms
		g.Waiting(one.Since, 1)
		g.Add([]Receipt{one})
	}
	want := []record.Gap{
		record.Gap{From: 110 * ms, To: 240 * ms}.Proven(210*ms, 240*ms),
		{From: 240 * ms, To: 270 * ms},
		record.Gap{From: 270 * ms, To: 310 * ms}.Proven(280*ms, 310*ms),
		record.Gap{From: 310 * ms, To: 350 * ms}.Proven(320*ms, 350*ms),
	}
	if diff := cmp.Diff(want, merge.gaps(loadLog, clock.Never, 400*ms, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The same holds for what all clients of a pod have. Each of them has longer gaps all the time, as it has a part of the
// load: that these overlap tells nothing.
func TestGapOfAllClientsThatGoesOn(t *testing.T) {
	logs, merge := testLogs(2, 20*ms)
	success := func(client int, at, since int64) {
		one := exactly(at)
		one.Since = since
		logs[client].Waiting(since, 1)
		logs[client].Add([]Receipt{one})
	}
	// each after 40 ms, in turn: 20 ms without a success, in which both have waited for 15
	for at := 10 * ms; at < 200*ms; at += 40 * ms {
		success(0, at, at-35*ms)
		success(1, at+20*ms, at-15*ms)
	}
	if got := merge.gaps(loadLog, 190*ms, 200*ms, false); len(got) != 0 {
		t.Errorf("without an outage: %v", got)
	}
	success(0, 300*ms, 200*ms)
	success(1, 302*ms, 200*ms)
	success(0, 315*ms, 301*ms)
	success(1, 316*ms, 303*ms)
	if got, want := merge.gaps(loadLog, 314*ms, 320*ms, false),
		[]record.Gap{{From: 190 * ms, To: 300 * ms}}; !sameEnds(got, want) {
		t.Errorf("an outage: %v, want %v", got, want)
	}
	if got, want := merge.gaps(loadLog, 320*ms, 330*ms, false),
		[]record.Gap{{From: 302 * ms, To: 315 * ms}}; !sameEnds(got, want) {
		t.Errorf("as it goes on: %v, want %v", got, want)
	}
}

// TestGapWaitsForAllClients: a gap of one event loop is not given out before the other one has run, as that can have
// read a reply in it; the interval says that gaps are missing.
func TestGapWaitsForAllClients(t *testing.T) {
	logs, merge := testLogs(2, 10*ms)
	logs[0].Add([]Receipt{exactly(1000 * ms), exactly(1500 * ms), exactly(3999 * ms)})
	logs[1].Add([]Receipt{exactly(1000 * ms)})
	reported := 1000 * ms
	merge[1].Settled = func() int64 { return reported }
	var early, late record.Interval
	merge.Take(&early, 1, 4000*ms, false)
	if len(early.Gaps) > 0 || !early.Unsettled {
		t.Errorf("while a loop does not run, the interval has the gaps %v, unsettled: %t", early.Gaps, early.Unsettled)
	}
	reported = 4100 * ms
	merge.Take(&late, 1, 4100*ms, false)
	if want := []record.Gap{
		{To: 1000 * ms},
		{From: 1000 * ms, To: 1500 * ms},
		{From: 1500 * ms, To: 3999 * ms},
	}; !sameEnds(late.Gaps, want) || late.Unsettled {
		t.Errorf("after it has run, the interval has the gaps %v, unsettled: %t; want %v", late.Gaps, late.Unsettled, want)
	}
}

func sameEnds(a, b []record.Gap) bool {
	return slices.EqualFunc(a, b, func(a, b record.Gap) bool { return a.From == b.From && a.To == b.To })
}

func TestGapFromTheStart(t *testing.T) {
	logs, merge := testLogs(1, 0)
	logs[0].Add([]Receipt{exactly(Floor + 1)})
	if diff := cmp.Diff([]record.Gap{record.Unproven(0, Floor+1)},
		merge.gaps(loadLog, clock.Never, 1000*ms, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, none := testLogs(2, ms)
	if got := none.gaps(loadLog, clock.Never, 1000*ms, true); len(got) != 1 || !got[0].Open || got[0].From != 0 ||
		got[0].AtLeast(0) != 0 {
		t.Errorf("a run without a request has the gaps %v", got)
	}
}

// A wake-up's replies are in the order of the sockets, not of time: gaps are between any two of them.
func TestGapsWithinAWakeUp(t *testing.T) {
	logs, merge := testLogs(1, 5*ms)
	logs[0].Add([]Receipt{exactly(40 * ms), exactly(ms), exactly(20 * ms), exactly(22 * ms)})
	want := []record.Gap{record.Unproven(ms, 20*ms), record.Unproven(22*ms, 40*ms)}
	if diff := cmp.Diff(want, merge.gaps(loadLog, clock.Never, 100*ms, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The last replies are read when the record has ended: nobody knows which of them arrived before. No gap of the record
// reaches beyond its end.
func TestSuccessReadAfterTheEnd(t *testing.T) {
	logs, merge := testLogs(1, 5*ms)
	logs[0].Add([]Receipt{exactly(990 * ms), {Hi: 1001 * ms, Lo: 993 * ms, Surely: 993 * ms, OK: 1}})
	var iv record.Interval
	merge.Take(&iv, 1, 1000*ms, true)
	want := []record.Gap{
		record.Unproven(0, 990*ms),
		{From: 990 * ms, To: 1000 * ms, Open: true, MaybeSooner: 7 * ms, UnprovenHead: 10 * ms},
		{From: 1000 * ms, To: 1000 * ms, Open: true, MaybeBefore: 7 * ms},
	}
	if diff := cmp.Diff(want, iv.Gaps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := iv.Check(); err != nil {
		t.Error(err)
	}
}

// A success that is read late can have arrived in a gap that another loop has reported.
func TestLateSuccessDividesAGap(t *testing.T) {
	logs, merge := testLogs(1, 5*ms)
	g := logs[0]
	g.Add([]Receipt{exactly(10 * ms)})
	g.Waiting(10*ms, 1)
	g.Add([]Receipt{exactly(60 * ms)})
	g.Add([]Receipt{{Hi: 30 * ms, Lo: 28 * ms, Surely: 29 * ms, OK: 1}})
	want := []record.Gap{
		record.Unproven(0, 10*ms),
		{From: 10 * ms, To: 30 * ms, MaybeSooner: 2 * ms, UnprovenTail: 2 * ms},
		{From: 30 * ms, To: 60 * ms, MaybeBefore: ms, UnprovenHead: 30 * ms},
	}
	if diff := cmp.Diff(want, merge.gaps(loadLog, clock.Never, 100*ms, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProof(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       func(*proof)
		from, to int64
	}{
		{name: "nothing", do: func(*proof) {}},
		{name: "in flight", do: func(p *proof) { p.wait(5, record.Bridge); p.wait(9, record.Bridge) }, from: 5, to: 1000},
		{name: "failed", do: func(p *proof) { p.failed(5, 9, record.Bridge); p.idle() }, from: 5, to: 9},
		{name: "broken after a look", do: func(p *proof) { p.wait(5, record.Bridge); p.lost(30) }, from: 5, to: 30},
		{name: "redialled in time", do: func(p *proof) {
			p.wait(5, record.Bridge)
			p.lost(30)
			p.failed(40, 40, record.Bridge)
			p.wait(90, record.Bridge)
		}, from: 5, to: 1000},
		{name: "not redialled for long", do: func(p *proof) {
			p.wait(5, record.Bridge)
			p.lost(30)
			p.failed(40+record.Bridge, 60+record.Bridge, record.Bridge)
		}, from: 5, to: 30},
		{
			name: "the longer part", do: func(p *proof) {
				p.wait(5, record.Bridge)
				p.lost(30)
				p.failed(40+record.Bridge, 140+record.Bridge, record.Bridge)
			},
			from: 40 + record.Bridge, to: 140 + record.Bridge,
		},
	} {
		var p proof
		c.do(&p)
		if from, to := p.longest(1000); from != c.from || to != c.to {
			t.Errorf("%s: proven from %d to %d, expected %d to %d", c.name, from, to, c.from, c.to)
		}
	}
}

// Several loops, each kept from running at random, find the outage with the truth within the bounds, whatever the order
// in which they report.
func TestTruthWithinBoundsOfLateLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 2000 {
		down := 200*ms + r.Int64N(100*ms)
		up := down + 20*ms + r.Int64N(200*ms)
		logs, merge := testLogs(1+r.IntN(3), 5*ms)
		for _, g := range logs {
			simulateLoop(r, g, down, up)
		}
		var atLeast, atMost int64 // a late success divides the gap: each bound is the greatest of all
		gaps := merge.gaps(loadLog, clock.Never, 700*ms, false)
		for _, g := range gaps {
			if g.To > down && g.From < up {
				atLeast, atMost = max(atLeast, g.AtLeast(0)), max(atMost, g.AtMost())
			}
		}
		if truth := up - down; atLeast > truth || atMost < truth {
			t.Fatalf("round %d: truth %d us, bounds %d to %d us: %+v", round, truth/1000, atLeast/1000, atMost/1000, gaps)
		}
	}
}

// simulateLoop sends a request every few milliseconds while the loop runs. The server answers at once, except within
// [down, up). Half of the replies have a stamp; the others are known only to have come since the last look.
func simulateLoop(r *rand.Rand, g *Logs, down, up int64) {
	type flight struct{ sent, answered int64 }
	var flying []flight
	var before, last int64 // instants at which the loop looked
	for now := int64(0); now < 600*ms; {
		var read []Receipt
		flying = slices.DeleteFunc(flying, func(f flight) bool {
			if f.answered > now {
				return false
			}
			a := Receipt{Hi: now, Lo: max(before, f.sent), OK: 1}
			if r.IntN(2) == 0 {
				a.Hi, a.Lo = f.answered, f.answered
			}
			a.Surely = a.Lo
			read = append(read, a)
			return true
		})
		g.Add(read)
		if len(flying) < 20 {
			answered := now
			if now >= down {
				answered = max(now, up)
			}
			flying = append(flying, flight{now, answered})
		}
		var waiting uint64
		if len(flying) > 0 {
			waiting = 1
		}
		g.Waiting(now, waiting)
		before, last = last, now
		if now += r.Int64N(4 * ms); r.IntN(20) == 0 {
			now += r.Int64N(100 * ms) // the loop does not run
		}
	}
}

func TestSuccessPace(t *testing.T) {
	p := newSuccessPace(100 * ms)
	if p.mean() != 0 {
		t.Errorf("before any success the pace is %d", p.mean())
	}
	for range 50 {
		p.add(10)
	}
	if p.mean() != 10*ms {
		t.Errorf("10 per 100 ms are a pace of %d ns", p.mean())
	}
	for range 600 { // an outage of a minute counts as one second of it
		p.add(0)
	}
	if p.mean() != 12*ms {
		t.Errorf("after an outage the pace is %d ns, want 12 ms", p.mean())
	}
	for range 100 { // the window moves on
		p.add(2)
	}
	if p.mean() != 50*ms {
		t.Errorf("at 2 per 100 ms the pace is %d ns, want 50 ms", p.mean())
	}
}

// A success of a connection that was greeted long before proves no more than its own request did, if failed requests
// were read with it.
func TestFailuresReadWithAnEarlySuccess(t *testing.T) {
	var l Receipts
	l.Note(Receipt{Hi: 1000 * ms, Lo: 1000 * ms, Surely: 1000 * ms, Sent: 990 * ms, Failed: 2})
	l.Note(Receipt{
		Hi: 1000 * ms, Lo: 1000 * ms, Surely: 1000 * ms, OK: 1, Alive: 101 * ms, Early: 110 * ms, Asked: 990 * ms,
	})
	threshold := new(atomic.Int64)
	threshold.Store(Floor)
	g := Log{threshold: threshold, last: 100 * ms, surely: 100 * ms}
	g.success(&l[0])
	if proven := g.ended[0].AtLeast(0); len(l) != 1 || proven > 10*ms {
		t.Errorf("%d receipts, %v of the gap are proven: %+v", len(l), time.Duration(proven), g.ended[0])
	}
}

// Replies that are read together prove what the longest of their requests has waited, of the parts of the load that it
// is of. Where nothing was sent while the server was heard, they prove no more: what waited then waited for a
// connection, say.
func TestRepliesReadTogether(t *testing.T) {
	reply := func(at, asked, alive int64, ok uint64) Receipt {
		return Receipt{
			Hi: at * ms, Lo: at * ms, Surely: at * ms, OK: ok, Since: asked * ms, Flight: asked * ms, Alive: alive * ms,
			Asked: asked * ms, Early: (alive + at - asked) * ms,
		}
	}
	const whole, reads, writes = 1, 3, 5 // each is of the whole load, too
	for name, c := range map[string]struct {
		waits  int64 // when a request, or a dial, began to wait
		list   []Receipt
		proven [3]int64 // of the load, its reads, its writes; -1 = there is no gap
	}{
		"one that was sent late": {150, []Receipt{reply(401, 400, 100, whole)}, [3]int64{1, -1, -1}},
		"two, of which one was heard behind": {
			150,
			[]Receipt{reply(401, 400, 100, whole), reply(401, 400, 200, whole)},
			[3]int64{1, -1, -1},
		},
		"the same, the other way round": {
			150,
			[]Receipt{reply(401, 400, 200, whole), reply(401, 400, 100, whole)},
			[3]int64{1, -1, -1},
		},
		"the second was sent long before": {
			150,
			[]Receipt{reply(401, 390, 100, whole), reply(401, 150, 100, whole)},
			[3]int64{251, -1, -1},
		},
		"the same, by the kernel's stamps": {
			150,
			[]Receipt{reply(401, 390, 100, whole), reply(402, 150, 100, whole)},
			[3]int64{251, -1, -1},
		},
		"the same, in the next wake-up": {
			150,
			[]Receipt{reply(401, 390, 100, whole), reply(401, 150, 100, whole)},
			[3]int64{251, -1, -1},
		},
		"and at once": {
			150,
			[]Receipt{reply(401, 390, 100, whole), {Hi: 402 * ms, Lo: 402 * ms, Surely: 402 * ms, OK: whole, Flight: 150 * ms}},
			[3]int64{251, -1, -1},
		},
		"of another part": {
			150,
			[]Receipt{reply(401, 390, 100, reads), reply(401, 150, 100, writes)},
			[3]int64{11, 11, 11},
		},
		"of another part, the other way": {
			150,
			[]Receipt{reply(401, 150, 100, writes), reply(401, 390, 100, reads)},
			[3]int64{11, 11, 11},
		},
		"one that can have arrived long before": {
			150,
			[]Receipt{reply(401, 390, 100, whole), {Hi: 402 * ms, Lo: 160 * ms, Surely: 160 * ms, OK: whole, Flight: 150 * ms}},
			[3]int64{0, -1, -1},
		},
	} {
		g := NewLogs(NewThresholds(3, 0, Floor), false)
		var l Receipts
		before := exactly(50 * ms)
		before.OK = 7
		g.Add([]Receipt{before})
		g.Waiting(c.waits*ms, 7)
		for i, a := range c.list {
			if l.Note(a); name == "the same, in the next wake-up" && i == 0 {
				g.Add(l)
				l = nil
			}
		}
		g.Add(l)
		for part, want := range c.proven {
			proven := int64(-1)
			if ended := g.parts[part].ended; len(ended) > 1 { // the first is from the start
				proven = ended[1].AtLeast(0)
			}
			if want >= 0 {
				want *= ms
			}
			if proven != want {
				t.Errorf("%s: %v of part %d are proven, want %v", name, time.Duration(proven), part, time.Duration(want))
			}
		}
	}
}

// That a connection's server was alive before the gap says nothing of the gap: what waited in it proves it.
func TestConnectionGreetedBeforeTheGap(t *testing.T) {
	threshold := new(atomic.Int64)
	threshold.Store(Floor)
	for _, c := range []struct{ alive, proven int64 }{{90 * ms, 900 * ms}, {150 * ms, 90 * ms}} {
		g := Log{threshold: threshold, last: 100 * ms, surely: 100 * ms}
		g.Wait(100 * ms)
		g.success(&Receipt{
			Hi: 1000 * ms, Lo: 1000 * ms, Surely: 1000 * ms, OK: 1, Alive: c.alive, Early: c.alive + 40*ms, Asked: 960 * ms,
		})
		if got := g.ended[0].AtLeast(0); got != c.proven {
			t.Errorf("alive at %v: %v are proven, want %v: %+v", time.Duration(c.alive), time.Duration(got),
				time.Duration(c.proven), g.ended[0])
		}
	}
}

// TestTruthRepliesWithinAWakeUp: replies that are read in one wake-up are apart by more than a gap, with others in
// between.
func TestTruthRepliesWithinAWakeUp(t *testing.T) {
	logs, merge := testLogs(1, 5*ms)
	logs[0].Add([]Receipt{exactly(0)})
	for wake := range int64(182) {
		var read []Receipt
		for i := range int64(128) {
			read = append(read, exactly(wake*14*ms+i*ms/10))
		}
		logs[0].Add(read)
	}
	gaps := merge.gaps(loadLog, clock.Never, clock.Never, false)
	truth.Report(t, "T7", "182 wake-ups with 128 replies each, 0.1 ms apart", "no gap", fmt.Sprintf("%d gaps", len(gaps)),
		len(gaps) == 0)
}

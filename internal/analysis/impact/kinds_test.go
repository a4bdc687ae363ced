package impact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// stream is the requests of one operation in a simulated run.
type stream struct {
	name    string
	rate    float64 // requests/s
	reads   bool
	failing []summary.Window // every request fails at once
	every   []summary.Window // one request of a second fails
	dropped []summary.Window // no request is sent
	off     []summary.Window // nothing is due
	shards  int              // that serve requests in turn, all of which fail at shard 1 alone; 0 = one
}

// recordOf makes the record of several operations, with random arrivals if r is not nil. It has no gaps.
func recordOf(t *testing.T, length time.Duration, r *rand.Rand, streams ...stream) *merged.Series {
	t.Helper()
	names, reads := make([]string, len(streams)), make([]bool, len(streams))
	for op, one := range streams {
		names[op], reads[op] = one.name, one.reads
	}
	s := merged.New("run", time.Unix(0, 0), recorded.Step, names, 1)
	s.SetReadOnly(reads)
	list := make([]record.Interval, int(length/recorded.Step))
	for i := range list {
		list[i] = record.Interval{
			Index: int64(i), Pods: 1, Ops: make([]record.Op, len(streams)), FirstError: -1, LastError: -1, FirstOK: -1,
			LastOK: -1,
		}
	}
	for op, one := range streams {
		one.add(list, op, length, r)
	}
	for i := range list {
		if err := s.Add(0, &list[i]); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

func (one *stream) add(list []record.Interval, op int, length time.Duration, r *rand.Rand) {
	spacing := float64(time.Second) / one.rate
	failed := time.Duration(-1)
	for n, at := 0, time.Duration(spacing/2); at < length; n++ {
		iv := &list[at/recorded.Step]
		c := &iv.Ops[op].Counts
		shard := &record.ShardCounts{}
		if one.shards > 0 {
			if iv.Shards == nil {
				iv.Shards = make([]record.ShardCounts, one.shards)
			}
			shard = &iv.Shards[n%one.shards]
		}
		switch {
		case recorded.Amid(one.off, at):
		case recorded.Amid(one.dropped, at):
			c.Due++
			c.Dropped++
		case recorded.Amid(one.failing, at) && (one.shards == 0 || n%one.shards == 1),
			recorded.Amid(one.every, at) && at/time.Second != failed/time.Second:
			c.Due, c.Sent, c.Fail, failed = c.Due+1, c.Sent+1, c.Fail+1, at
			shard.Errors++
			c.Errors[record.ClassReadOnly]++
			if iv.FirstError < 0 {
				iv.FirstError = int64(at)
			}
			iv.FirstError, iv.LastError = min(iv.FirstError, int64(at)), max(iv.LastError, int64(at))
		default:
			c.Due, c.Sent, c.OK = c.Due+1, c.Sent+1, c.OK+1
			if iv.FirstOK < 0 {
				iv.FirstOK = int64(at)
			}
			iv.FirstOK, iv.LastOK = min(iv.FirstOK, int64(at)), max(iv.LastOK, int64(at))
			shard.OK++
			iv.Ops[op].Latency = histogram.Merge(iv.Ops[op].Latency, histogram.Buckets{{Index: 300, Count: 1}})
		}
		if r != nil {
			at += time.Duration(r.ExpFloat64() * spacing)
		} else {
			at += time.Duration(spacing)
		}
	}
}

// One request of ten is a write, and all of these fail for 15 s: the dip of the load is 10 %, that of the writes 100 %.
func TestTruthDeadWritesAreADip(t *testing.T) {
	fault := Fault{At: 40 * time.Second, Deadline: 30 * time.Second}
	r := rand.New(rand.NewPCG(1, 2))
	dead := recordOf(t, 90*time.Second, r, stream{name: "get", rate: 900, reads: true}, stream{
		name:    "set",
		rate:    100,
		failing: []summary.Window{seconds(40.5, 55.5)},
	})
	m := Analyze(dead, fault, Options{})
	dip, of := m.Dip.Value, m.Dip.Of
	truth.Report(t, "T3", "10 % writes, all of which fail for 15 s: the dip", "load 0.1 to 0.2, worst 1.00 of Writes",
		fmt.Sprintf("load %.2f, worst %.2f of %s", m.Dips.All, dip, of),
		m.Dips.All > 0.1 && m.Dips.All < 0.25 && dip == 1 && of == Writes)
	w := m.Writes
	truth.Report(t, "T3", "10 % writes, all of which fail for 15 s from 0.5 s on: errors",
		"1500 from 0.5s to 15.5s, of reads none",
		fmt.Sprintf("%d from %.1fs to %.1fs, of reads %d", w.Errors, w.FirstError.Seconds(), w.LastError.Seconds(),
			m.Reads.Errors),
		near(float64(w.Errors), 1500, 150) && near(w.FirstError.Seconds(), 0.5, 0.1) &&
			near(w.LastError.Seconds(), 15.5, 0.1) && m.Reads.Errors == 0 && m.Reads.FirstError == -1)

	// A fault without an effect: the noise of the writes is greater than that of the load, and does not decide.
	for seed := range uint64(50) {
		quiet := recordOf(t, 60*time.Second, rand.New(rand.NewPCG(seed, 3)), stream{name: "get", rate: 900, reads: true},
			stream{name: "set", rate: 100})
		if m := Analyze(quiet, fault, Options{}); m.Dip.Of != All {
			t.Errorf("seed %d: without an effect the dip %.2f of %s decides, that of the load is %.2f", seed, m.Dips.Writes,
				m.Dip.Of, m.Dips.All)
		}
	}
	// An earlier fault within the baseline does not hide this one.
	again := recordOf(t, 90*time.Second, nil, stream{name: "get", rate: 900, reads: true}, stream{
		name:    "set",
		rate:    100,
		failing: []summary.Window{seconds(20, 24), seconds(40, 45)},
	})
	if m := Analyze(again, fault, Options{}); m.Dip.Of != Writes || m.Dips.Writes != 1 {
		t.Errorf("after an earlier fault the dip is %.2f of %q", m.Dips.Writes, m.Dip.Of)
	}
	// Both kinds fail: the dip is that of the load.
	both := recordOf(t, 90*time.Second, nil,
		stream{name: "get", rate: 900, reads: true, failing: []summary.Window{seconds(40, 45)}},
		stream{name: "set", rate: 100, failing: []summary.Window{seconds(40, 45)}})
	if m := Analyze(both, fault, Options{}); m.Dip.Of != All || m.Dips.All != 1 || m.Dips.Writes != 1 {
		t.Errorf("of all requests the dip is %.2f, worst of %q", m.Dips.All, m.Dip.Of)
	}
}

// A load of one operation has a row, with the figures of the load.
func TestOneOperationHasARow(t *testing.T) {
	s := recordOf(t, 90*time.Second, nil, stream{name: "set", rate: 1000, failing: []summary.Window{seconds(40.5, 42)}})
	m := Analyze(s, Fault{At: 40 * time.Second}, Options{})
	if len(m.Operations) != 1 || m.Writes == nil || m.Reads != nil {
		t.Fatalf("operations %+v, writes %+v, reads %+v", m.Operations, m.Writes, m.Reads)
	}
	for _, e := range []Effect{m.Operations[0], {Outage: m.Outages.Writes, Dip: m.Dips.Writes, Failures: *m.Writes}} {
		if e.FirstError != m.TimeToImpact.Value || e.LastError-e.FirstError != m.ErrorWindow || e.Errors != m.Errors ||
			e.Dip != m.Dips.All || e.Outage != m.Outage.Bounded {
			t.Errorf("%+v, of the load %+v", e, m)
		}
	}
}

// One GET of a second fails all along, and more from 4 s after the injection on.
func TestTruthErrorsOfTheBaselineAreNotTheFaults(t *testing.T) {
	s := recordOf(t, 90*time.Second, nil,
		stream{
			name:    "get",
			rate:    500,
			reads:   true,
			every:   []summary.Window{seconds(0, 90)},
			failing: []summary.Window{seconds(44, 46)},
		}, stream{name: "set", rate: 500})
	m := Analyze(s, Fault{At: 40 * time.Second, SeenAt: 46 * time.Second}, Options{})
	get := m.Operations[0]
	truth.Report(t, "T3", "one GET of a second fails all along, all from 4 s to 6 s",
		"load 4s, get 4s to 6s, reads 4s, set none",
		fmt.Sprintf("load %.1fs, get %.1fs to %.1fs, reads %.1fs, set %d", m.TimeToImpact.Value.Seconds(),
			get.FirstError.Seconds(), get.LastError.Seconds(),
			m.Reads.FirstError.Seconds(), m.Operations[1].FirstError),
		near(m.TimeToImpact.Value.Seconds(), 4, 0.1) && near(get.FirstError.Seconds(), 4, 0.1) &&
			near(get.LastError.Seconds(), 6, 0.1) &&
			m.Reads.FirstError == get.FirstError && m.Operations[1].FirstError == -1)
	// An error in the interval of the injection, but before it, is not the fault's.
	if m := Analyze(s, Fault{At: 44*time.Second + 50*ms}, Options{}); m.Operations[0].FirstError < 0 {
		t.Errorf("the first error is %s after the injection", m.Operations[0].FirstError)
	}
}

func TestDipOfARareOperationIsNotGiven(t *testing.T) {
	fault := Fault{At: 40 * time.Second}
	for _, c := range []struct {
		rate  float64
		given bool
	}{{0.3, false}, {3, false}, {20, false}, {26, true}, {100, true}} {
		s := recordOf(t, 60*time.Second, nil, stream{name: "get", rate: 1000, reads: true}, stream{name: "del", rate: c.rate})
		m := Analyze(s, fault, Options{})
		for of, dip := range map[string]float64{"del": m.Operations[1].Dip, Writes: m.Dips.Writes} {
			if math.IsNaN(dip) == c.given {
				t.Errorf("the dip of %s at %v/s is %v", of, c.rate, dip)
			}
		}
	}
	short := recordOf(t, 60*time.Second, nil, stream{name: "get", rate: 1000, reads: true}, stream{name: "del", rate: 90})
	if m := Analyze(short, Fault{At: 1050 * ms}, Options{}); !math.IsNaN(m.Operations[1].Dip) ||
		math.IsNaN(m.Operations[0].Dip) {
		t.Errorf("after 90 successes the dip is %v", m.Operations[1].Dip)
	}
	// An operation that is dead does not decide by a dip that is not known.
	dead := recordOf(t, 60*time.Second, nil, stream{name: "get", rate: 1000, reads: true}, stream{
		name:    "del",
		rate:    3,
		dropped: []summary.Window{seconds(40, 60)},
	})
	if m := Analyze(dead, fault, Options{}); m.Dip.Of != All || m.Writes.Errors != 60 {
		t.Errorf("the dip of %q decides, %d errors", m.Dip.Of, m.Writes.Errors)
	}
}

// Three operations are sent one after the other at the same rate: that the turn of one ends is no effect of the fault.
func TestTruthEndOfATurnIsNoDip(t *testing.T) {
	s := recordOf(t, 90*time.Second, nil, stream{name: "set", rate: 1000, off: []summary.Window{seconds(41, 90)}},
		stream{name: "get", rate: 1000, reads: true, off: []summary.Window{seconds(0, 41), seconds(60, 90)}},
		stream{name: "incr", rate: 1000, off: []summary.Window{seconds(0, 60)}})
	fault := Fault{At: 40500 * ms, Active: seconds(40.5, 42)}
	m := Analyze(s, fault, Options{Planned: plan.Planned{InTurn: true}})
	truth.Report(t, "T8", "the turn of an operation of a benchmark ends during a harmless fault",
		"dip 0.00, of set NaN, of writes NaN, p99 NaN",
		fmt.Sprintf("dip %.2f, of set %.2f, of writes %.2f, p99 %.2f", m.Dips.All, m.Operations[0].Dip, m.Dips.Writes,
			m.WhileActive.LatencyP99Change),
		m.Dips.All < 0.01 && m.Dip.Of == All && math.IsNaN(m.Operations[0].Dip) && math.IsNaN(m.Dips.Writes) &&
			math.IsNaN(m.WhileActive.LatencyP99Change) && near(m.WhileActive.Change, 0, 0.01))
	within := Analyze(s, Fault{At: 30 * time.Second, Active: seconds(30, 32)}, Options{
		Planned: plan.Planned{InTurn: true},
	})
	if within.Operations[0].Dip != 0 || within.WhileActive.LatencyP99Change != 0 {
		t.Errorf("within a turn %+v, %+v", within.Operations[0], within.WhileActive)
	}
}

// The rate of an operation follows the plan: its dip is that below the planned rate, before and after a planned change.
func TestDipOfAnOperationFollowsThePlan(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails summary.Window
		at    float64
	}{
		{"the plan changes after the injection", seconds(46, 46.2), 40},
		{"the plan changes before the injection", seconds(50, 50.2), 50},
	} {
		s := recorded.Load{
			Rate:    1000,
			Length:  90 * time.Second,
			Slow:    []summary.Window{seconds(45, 90)},
			Failing: []summary.Window{c.fails},
		}.Record(t)
		s.Finish(0)
		m := Analyze(s, Fault{At: seconds(c.at, 0).From, SeenAt: 50 * time.Second}, Options{
			Planned: recorded.Halved(45*time.Second, true, 0),
		})
		if !near(m.Operations[0].Dip, 0.2, 0.01) || m.Dips.All != m.Operations[0].Dip {
			t.Errorf("%s: a fifth of a second fails, the dip of the operation is %v, that of the load %v", c.name,
				m.Operations[0].Dip, m.Dips.All)
		}
	}
}

// All writes of one shard of three fail for 15 s, its reads succeed: no gap of the shard, and none of the writes.
func TestTruthDeadWritesOfAShardAreDoubted(t *testing.T) {
	fault := Fault{At: 40 * time.Second, Deadline: 30 * time.Second}
	for _, c := range []struct {
		name     string
		get, set stream
		want     bool
	}{
		{"all writes of shard 1 fail for 15 s", stream{}, stream{failing: []summary.Window{seconds(40, 55)}}, true},
		{"all writes of shard 1 fail for 0.8 s", stream{}, stream{failing: []summary.Window{seconds(40, 40.8)}}, false},
		{"one write of a second fails", stream{}, stream{every: []summary.Window{seconds(40, 55)}}, false},
		{"one write of a second fails all along", stream{}, stream{every: []summary.Window{seconds(0, 90)}}, false},
		{"no request fails", stream{}, stream{}, false},
		{"all reads of shard 1 fail for 15 s", stream{failing: []summary.Window{seconds(40, 55)}}, stream{}, true},
	} {
		c.get.name, c.get.rate, c.get.reads, c.get.shards = "get", 900, true, 3
		c.set.name, c.set.rate, c.set.shards = "set", 100, 3
		m := Analyze(recordOf(t, 90*time.Second, nil, c.get, c.set), fault, Options{})
		want := ""
		if c.want {
			want = ShardPartlyFailed
		}
		truth.Report(t, "T3", "of three shards, "+c.name+", other requests to it succeed", "shard outage 0s, "+want,
			fmt.Sprintf("shard outage %s, %s", m.Outages.Shard.Value, reasons(m)),
			m.Outages.Shard.Value == 0 && reasons(m) == want)
		if c.want && !strings.Contains(m.Doubts[0].Message, "requests to shard 1 failed for 15s") {
			t.Error(m.Doubts[0].Message)
		}
	}
}

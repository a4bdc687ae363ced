package merged

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/testing/intervals"
)

func TestSeriesDoesNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := world(r, 1+r.IntN(4), 20)
		a, b := newTestSeries(len(w)), newTestSeries(len(w))
		deliver(r, a, w, nil)
		deliver(r, b, w, nil)
		if diff := difference(a, b, sameSeries); diff != "" {
			t.Fatalf("seed %d, two interleavings differ:\n%s", seed, diff)
		}
		if diff := difference(a.Gaps(), b.Gaps()); diff != "" {
			t.Fatalf("seed %d, gaps differ:\n%s", seed, diff)
		}
		if diff := difference(a.Agents(), b.Agents()); diff != "" || len(a.Agents()) == 0 {
			t.Fatalf("seed %d, agents differ:\n%s", seed, diff)
		}
	}
}

func TestSeriesIsTheSumOfThePods(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	w := world(r, 3, 30)
	s := newTestSeries(3)
	deliver(r, s, w, nil)
	var got, want record.Counts
	var gotTallies, wantTallies [2]uint64
	var gotShards, wantShards [2]record.ShardCounts
	sum := func(iv *record.Interval, tallies *[2]uint64, shards *[2]record.ShardCounts) {
		for k := range 2 {
			tallies[k] += iv.Tallies[k]
			shards[k].OK += iv.Shards[k].OK
			shards[k].Errors += iv.Shards[k].Errors
		}
	}
	var gotLatency, wantLatency histogram.Distribution
	for i := range s.Len() {
		iv := s.At(i)
		sum(iv, &gotTallies, &gotShards)
		pods, connections := 0, 0
		for p := range w {
			if i < len(w[p]) {
				pods++
				connections += w[p][i].Connections
			}
		}
		if iv.Index != int64(i) || iv.Pods != pods || iv.Connections != connections {
			t.Errorf("interval %d: index %d, pods %d, connections %d, want %d and %d", i, iv.Index, iv.Pods, iv.Connections,
				pods, connections)
		}
		for k := range iv.Ops {
			got.Add(&iv.Ops[k].Counts)
			gotLatency.Add(iv.Ops[k].Latency)
		}
	}
	for p := range w {
		for _, iv := range w[p] {
			sum(iv, &wantTallies, &wantShards)
			for k := range iv.Ops {
				want.Add(&iv.Ops[k].Counts)
				wantLatency.Add(iv.Ops[k].Latency)
			}
		}
	}
	if diff := difference(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := difference(wantLatency, gotLatency, cmp.AllowUnexported(histogram.Distribution{})); diff != "" {
		t.Error(diff)
	}
	if gotTallies != wantTallies || gotShards != wantShards || wantTallies[0] == 0 || wantShards[1].OK == 0 {
		t.Errorf("tallies %v, want %v; shards %v, want %v", gotTallies, wantTallies, gotShards, wantShards)
	}
	if want.OK == 0 || want.Fail == 0 {
		t.Fatal("the simulation made no successes or no errors")
	}
}

func TestSeriesAddRefuses(t *testing.T) {
	s := newTestSeries(2)
	w := world(rand.New(rand.NewPCG(1, 1)), 2, 5)
	for _, c := range []struct {
		name string
		pod  int
		iv   *record.Interval
		want error
	}{
		{"ahead", 0, w[0][1], ErrHole},
		{"the first", 0, w[0][0], nil},
		{"the same again", 0, w[0][0], ErrDuplicate},
		{"no such pod", 2, w[0][0], ErrShape},
		{"negative pod", -1, w[0][0], ErrShape},
		{"another number of operations", 1, &record.Interval{Ops: make([]record.Op, 3)}, ErrShape},
		{"too many tallies", 1, &record.Interval{Ops: make([]record.Op, 2), Tallies: make([]uint64, 3)}, ErrShape},
		{
			"too many shards",
			1,
			&record.Interval{Ops: make([]record.Op, 2), Shards: make([]record.ShardCounts, record.MaxShards+1)},
			ErrShape,
		},
		{
			"a gap of no shard",
			1,
			&record.Interval{Ops: make([]record.Op, 2), ShardGaps: []record.ShardGap{{Shard: -1}}},
			ErrShape,
		},
		{"the second", 0, w[0][1], nil},
	} {
		if err := s.Add(c.pod, c.iv); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
	before := *s.At(1)
	s.Lose(0)
	if err := s.Add(0, w[0][1]); !errors.Is(err, ErrDuplicate) {
		t.Errorf("a duplicate of a lost pod: %v", err)
	}
	if err := s.Add(0, w[0][2]); !errors.Is(err, ErrEnded) {
		t.Errorf("an interval of a lost pod: %v", err)
	}
	if diff := difference(before, *s.At(1)); diff != "" || s.Len() != 2 || s.Next(0) != 2 {
		t.Errorf("refused intervals changed the series: length %d, next %d\n%s", s.Len(), s.Next(0), diff)
	}
}

// silentFor returns n intervals without a request.
func silentFor(n int) []*record.Interval {
	list := make([]*record.Interval, n)
	for i := range list {
		iv := record.NewInterval(int64(i), len(intervals.Ops))
		list[i] = &iv
	}
	return list
}

func addAll(t *testing.T, s *Series, pod int, list []*record.Interval) {
	t.Helper()
	for _, iv := range list[s.Next(pod):] {
		if err := s.Add(pod, iv); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeriesComplete(t *testing.T) {
	s := newTestSeries(3)
	addAll(t, s, 0, silentFor(10))
	addAll(t, s, 1, silentFor(7))
	check := func(what string, complete, length int, end time.Duration) {
		t.Helper()
		if s.Complete() != complete || s.Len() != length || s.End() != end {
			t.Errorf("%s: complete %d of %d until %v, want %d of %d until %v", what, s.Complete(), s.Len(), s.End(), complete,
				length, end)
		}
	}
	check("one pod delivered nothing", 0, 10, 0)
	s.Lose(2)
	check("it is lost", 7, 10, 700*time.Millisecond)
	s.Finish(1)
	check("another finished early", 10, 10, time.Second)
	if s.Ended() || s.Lost() != 1 {
		t.Errorf("Ended %v, Lost %d", s.Ended(), s.Lost())
	}
	s.Finish(0)
	check("all ended", 10, 10, time.Second)
	if !s.Ended() {
		t.Error("not Ended")
	}
	s.coarsenCounts(200 * time.Millisecond)
	s.coarsenCounts(time.Second)
	s.coarsenCounts(2 * time.Second)
	check("coarsened beyond its length", 1, 1, time.Second)
}

func TestSeriesWindow(t *testing.T) {
	s := newTestSeries(1)
	addAll(t, s, 0, silentFor(30))
	ms := time.Millisecond
	for _, c := range []struct {
		from, to   time.Duration
		first, end int
	}{
		{0, time.Second, 0, 10},
		{1, 100 * ms, 1, 1},
		{1, 101 * ms, 1, 2},
		{-time.Second, 200 * ms, 0, 2},
		{2900 * ms, time.Hour, 29, 30},
		{time.Hour, 2 * time.Hour, 30, 30},
		{500 * ms, 400 * ms, 5, 5},
	} {
		if first, end := s.Window(c.from, c.to); first != c.first || end != c.end {
			t.Errorf("Window(%v, %v) = %d, %d, want %d, %d", c.from, c.to, first, end, c.first, c.end)
		}
	}
}

func TestSeriesServersStayInOrder(t *testing.T) {
	s := newTestSeries(2)
	late, early := silentFor(1), silentFor(1)
	late[0].Servers = []record.Server{{At: 50, Address: "b:1"}, {At: 70, Address: "a:1"}}
	early[0].Servers = []record.Server{{At: 50, Address: "a:1"}, {At: 60, Address: "a:1"}}
	addAll(t, s, 0, late)
	addAll(t, s, 1, early)
	want := []record.Server{
		{At: 50, Address: "a:1"},
		{At: 50, Address: "b:1"},
		{At: 60, Address: "a:1"},
		{At: 70, Address: "a:1"},
	}
	if diff := difference(want, s.Servers()); diff != "" {
		t.Error(diff)
	}
}

// A load that finished before its planned end ended with its last outcome, not with the end of the interval.
func TestSeriesLoadEnd(t *testing.T) {
	ms := time.Millisecond
	for _, tt := range []struct {
		name       string
		ok, failed time.Duration // the last of each; below 0 = none
		planned    time.Duration
		allDone    bool
		want       time.Duration
	}{
		{"as planned", 999 * ms, -1, time.Second, false, time.Second},
		{"as planned, and all done", 999 * ms, -1, time.Second, true, time.Second},
		{"as planned, within an interval", 940 * ms, -1, 950 * ms, false, 950 * ms},
		{"all done", 912 * ms, 905 * ms, 0, true, 912 * ms},
		{"all done before the planned end", 912 * ms, -1, time.Minute, true, 912 * ms},
		{"all done, and users still thought", 630 * ms, 540 * ms, 0, true, 630 * ms},
		{"the last one failed", 905 * ms, 930 * ms, 0, true, 930 * ms},
		{"a reply that was waited for", 1300 * ms, -1, 0, true, time.Second},
		{"interrupted", 912 * ms, -1, time.Minute, false, 912 * ms},
		{"interrupted in an outage", 650 * ms, -1, time.Minute, false, time.Second},
		{"nothing at all", -1, -1, 0, true, time.Second},
	} {
		s := New("run", time.Unix(0, 0), 100*ms, []string{"get"}, 1)
		for i := range int64(10) {
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
			}
			last := func(at time.Duration) int64 {
				if at >= 0 && min(int64(at/(100*ms)), 9) == i {
					return int64(at)
				}
				return -1
			}
			iv.LastOK, iv.LastError = last(tt.ok), last(tt.failed)
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		if got := s.LoadEnd(tt.planned, tt.allDone); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := New("run", time.Unix(0, 0), 100*ms, nil, 1).LoadEnd(time.Minute, true); got != 0 {
		t.Errorf("without an interval: %s", got)
	}
}

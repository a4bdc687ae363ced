package oracle

import (
	"math"
	"strings"
	"testing"
	"time"
)

// calm is a load of 1000 writes/s on one server, to which nothing happens.
func calm(events ...Event) *History {
	return &History{
		Rate: 1000, Pods: 1, Shards: 1, Writes: 1, Probe: 20, Timeout: time.Second,
		Baseline: 4 * time.Second, Observed: 8 * time.Second, Hold: 2 * time.Second, Events: events,
	}
}

func stop(at, length time.Duration) Event { return Event{Way: Stop, At: at, For: length, Only: All} }

const ms = time.Millisecond

// TestTruthOfSimpleHistories has truths that were computed by hand.
func TestTruthOfSimpleHistories(t *testing.T) {
	t.Parallel()
	mixed := func(shards int, events ...Event) *History {
		h := calm(events...)
		h.Shards, h.Reads = shards, 1
		return h
	}
	closed := func(events ...Event) *History {
		h := calm(events...)
		h.Rate, h.Users, h.Cost, h.Probe = 0, 4, ms, 20
		return h
	}
	nothing := Range{None: true}
	is := func(lo, hi float64) Range { return Range{Lo: lo, Hi: hi} }
	for name, tt := range map[string]struct {
		h    *History
		want Truth
	}{
		"nothing": {
			calm(),
			Truth{
				Recovery:     is(0, 0),
				TimeToImpact: {Lo: math.Inf(1), Hi: math.Inf(1), Unseen: true},
				Outage:       nothing,
				TotalOutage:  nothing,
				Errors:       nothing,
				LostRequests: nothing,
				BaselineRate: is(950, 1050),
			},
		},
		"a stop": {calm(stop(0, 500*ms)), Truth{
			// what waited is answered within the second
			Recovery:     is(0.5, 0.503),
			TimeToImpact: is(0, 0.0055),
			Outage:       is(0.5, 0.503),
			OutageLoad:   is(0.5, 0.503),
			OutageProbe:  is(0.5, 0.503),
			Dip:          is(-0.022, 0.5+0.022+0.003+4/math.Sqrt(1000)),
		}},
		"errors": {
			calm(Event{Way: Loading, At: 0, For: 500 * ms, Only: All}),
			Truth{Recovery: is(0.5, 0.503), Dip: is(0.5-0.022, 0.5+0.022+0.003+4/math.Sqrt(1000))},
		},
		"a late stop": {
			calm(stop(1500*ms, 300*ms)),
			Truth{Recovery: is(1.8, 1.803), Outage: is(0.3, 0.303), TimeToImpact: is(1.5, 1.5055)},
		},
		"two, of which the second is longer": {
			calm(stop(0, 100*ms), stop(1500*ms, 400*ms)),
			Truth{Recovery: is(1.9, 1.903), Outage: is(0.4, 0.403)},
		},
		"they overlap": {
			calm(stop(0, 300*ms), Event{Way: Hold, At: 200 * ms, For: 300 * ms, Only: All}),
			Truth{Outage: is(0.5, 0.503), Recovery: is(0.5, 0.503)},
		},
		"a second one after the recovery": {
			calm(stop(0, 100*ms), stop(4500*ms, 400*ms)),
			Truth{Recovery: is(0.1, 0.103), Outage: is(0.1, 0.103)},
		},
		"before the fault": {calm(stop(-2*time.Second, 90*ms)), Truth{Recovery: is(0, 0), Outage: nothing}},
		"it does not end":  {calm(stop(0, 8*time.Second)), Truth{Recovery: is(math.Inf(1), math.Inf(1))}},
		"writes only": {mixed(1, Event{Way: ReadOnly, At: 0, For: 400 * ms, Only: All}), Truth{
			OutageWrites: is(0.4, 0.403),
			OutageReads:  nothing,
			OutageGets:   nothing,
			OutageLoad:   {Hi: 0.031, Unseen: true},
			Outage:       is(0.4, 0.403),
		}},
		"one of two shards": {
			mixed(2, Event{Way: Stop, At: 0, For: 400 * ms, Only: 1}),
			Truth{OutageShard: is(0.4, 0.403), Outage: is(0.4, 0.403), Recovery: is(0.4, 0.403)},
		},
		"too short to be met": {
			calm(stop(time.Second, 10*ms)),
			Truth{Recovery: is(0, 1.013), TimeToImpact: {Lo: 1, Hi: math.Inf(1), Unseen: true}},
		},
		"a lower level": {
			closed(Event{Way: Lower, At: 0, For: 3 * time.Second, Only: All, Share: 0.2}),
			Truth{Recovery: is(3, 3.017), Outage: nothing, Errors: nothing, BaselineRate: is(931, 1029)},
		},
		"hardly lower": {
			closed(Event{Way: Lower, At: 0, For: 3 * time.Second, Only: All, Share: 0.05}),
			Truth{Recovery: is(0, 0), Outage: nothing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := TruthOf(tt.h, 0)
			for figure, want := range tt.want {
				g := got[figure]
				if want.None && g.None {
					continue
				}
				if g.None != want.None || g.Unseen != want.Unseen || math.Abs(g.Lo-want.Lo) > 0.0005 ||
					math.Abs(g.Hi-want.Hi) > 0.0005 {
					t.Errorf("%s: %v, want %v", figure, g, want)
				}
			}
		})
	}
}

// TestClear: a history is not clear if a trouble begins just when a recovery has held for long enough, or the load ends
// before it has.
func TestClear(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		h    *History
		want bool
	}{
		"nothing":         {calm(), true},
		"soon":            {calm(stop(0, 100*ms), stop(1500*ms, 100*ms)), true},
		"at the end":      {calm(stop(0, 100*ms), stop(2100*ms, 100*ms)), false},
		"much later":      {calm(stop(0, 100*ms), stop(5*time.Second, 100*ms)), true},
		"the load ends":   {calm(stop(0, 100*ms), stop(1500*ms, 4*time.Second)), false},
		"it does not end": {calm(stop(1500*ms, 8*time.Second)), true},
	} {
		if got := tt.h.Clear(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestDraw: a seed and a number give one history, and a few hundred have everything in them.
func TestDraw(t *testing.T) {
	t.Parallel()
	if a, b, c := Draw(1, 2).String(), Draw(1, 2).String(), Draw(1, 3).String(); a != b || a == c {
		t.Errorf("%s\n%s\n%s", a, b, c)
	}
	seen := map[string]int{}
	for i := range uint64(300) {
		h := Draw(7, i)
		note := func(what string, is bool) {
			if is {
				seen[what]++
			}
		}
		for w := range wayCount {
			note(w.String(), h.has(w))
		}
		note("closed loop", h.Users > 0)
		note("slow", h.Rate > 0 && h.Rate < 10)
		note("fast", h.Rate > 3000)
		note("four pods", h.Pods == 4)
		note("shards", h.Shards > 1)
		note("ledger", h.Ledger > 0)
		note("nothing", len(h.Events) == 0)
		note("disturbed", h.Disturbed())
		note("late", len(h.Events) > 0 && h.Events[0].At > time.Second)
		note("seen later", h.SeenAt > 0)
		note("does not end", TruthOf(h, 0)[Recovery].Lo > h.Observed.Seconds())
		if !h.Clear() || h.Observed < h.Hold {
			t.Errorf("%d: %s", i, h)
		}
	}
	if len(seen) != int(wayCount)+11 {
		t.Errorf("of what can be drawn, only this was: %v", seen)
	}
}

// TestString: a history is printed as source that makes it.
func TestString(t *testing.T) {
	t.Parallel()
	h := calm(stop(1500*ms, 2500*time.Microsecond), Event{
		Way:   Lower,
		At:    -time.Second,
		For:   time.Second,
		Only:  1,
		Share: 0.2,
	})
	const want = "History{Rate: 1000, Pods: 1, Shards: 1, Reads: 0, Writes: 1, Probe: 20, Timeout: 1*time.Second, " +
		"Baseline: 4*time.Second, Observed: 8*time.Second, Hold: 2*time.Second, " +
		"Events: []Event{{Way: Stop, At: 1500*time.Millisecond, For: 2500*time.Microsecond, Only: All}, {Way: Lower, At: " +
		"-1*time.Second, For: 1*time.Second, Only: 1, Share: 0.2}}}"
	if got := h.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestMinimize: what does not matter goes.
func TestMinimize(t *testing.T) {
	t.Parallel()
	h := calm(stop(312345*time.Microsecond, 512345*time.Microsecond),
		Event{Way: Refuse, At: 1200 * ms, For: 77 * ms, Only: 0},
		Event{Way: Stall, At: 2 * time.Second, For: 20 * ms, Only: 1})
	h.Pods, h.Shards, h.Reads, h.Rate, h.Users = 3, 2, 4, 777, 0
	got := Minimize(h, func(h *History) bool {
		return strings.Contains(h.String(), "Way: Stop") && h.Events[0].For >= 500*ms
	})
	if want := "Events: []Event{{Way: Stop, At: 0, For: 500*time.Millisecond, Only: All}}}"; got.Pods+got.Shards != 2 ||
		got.Probe != 0 || got.Rate != 100 || !strings.HasSuffix(got.String(), want) {
		t.Errorf("%s", got)
	}
}

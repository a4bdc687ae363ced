package merged

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/intervals"
)

// folding is a series that merges the gaps of its pods after every interval.
type folding struct {
	t *testing.T
	*Series
}

// add adds the next interval of a pod: with successes until lastOK if that is positive, and with the gaps that the pod
// knows by then.
func (f folding) add(pod int, lastOK time.Duration, change func(*record.Interval)) {
	f.t.Helper()
	iv := record.NewInterval(f.Next(pod), len(intervals.Ops))
	if lastOK > 0 {
		iv.Ops[0].OK, iv.FirstOK, iv.LastOK = 10, iv.Index*int64(testStep), int64(lastOK)
	}
	if change != nil {
		change(&iv)
	}
	if err := f.Add(pod, &iv); err != nil {
		f.t.Fatal(err)
	}
	f.foldGaps()
}

// until is the end of the next interval of a pod.
func (f folding) until(pod int) time.Duration { return time.Duration(f.Next(pod)+1) * testStep }

// run adds intervals with successes up to an instant, with such a gap between from and to.
func (f folding) run(pod int, end, from, to time.Duration) {
	f.t.Helper()
	for f.until(pod) <= end {
		switch at := f.until(pod); {
		case at <= from || at > to+testStep:
			f.add(pod, at, nil)
		case at <= to:
			f.add(pod, 0, nil)
		default:
			f.add(pod, at, func(iv *record.Interval) { iv.Gaps = []record.Gap{{From: int64(from), To: int64(to)}} })
		}
	}
}

// TestGapsThatAreDeliveredLate: an outage that a pod reports seconds after it has ended is found, although the gaps of
// the other pod were merged before.
func TestGapsThatAreDeliveredLate(t *testing.T) {
	t.Parallel()
	outage := record.Gap{From: int64(10 * time.Second), To: int64(10*time.Second + 500*time.Millisecond)}
	late := func(iv *record.Interval) { iv.Gaps = []record.Gap{outage} }
	for name, deliver := range map[string]func(folding){
		"one of its event loops did not run for 5 s, in which the other had successes": func(f folding) {
			f.run(1, time.Duration(outage.From), 0, 0)
			for f.until(1) <= 15*time.Second {
				at := f.until(1)
				if at <= time.Duration(outage.To) {
					at = 0
				}
				f.add(1, at, func(iv *record.Interval) { iv.Unsettled = true })
			}
			f.add(1, f.until(1), late)
		},
		"the pod was stopped for 3 s, and read the replies to it after that": func(f folding) {
			f.run(1, 10200*time.Millisecond, time.Duration(outage.From), time.Duration(outage.To))
			f.add(1, 0, func(iv *record.Interval) { iv.Unsettled = true })
			// the interval that was open next takes what was read while earlier ones were given out
			f.add(1, 13500*time.Millisecond, nil)
			f.add(1, 0, nil)
			f.add(1, 0, late)
			for f.until(1) <= 13500*time.Millisecond {
				f.add(1, 0, nil)
			}
		},
	} {
		f := folding{t, newTestSeries(2)}
		f.run(0, 20*time.Second, time.Duration(outage.From), time.Duration(outage.To))
		deliver(f)
		f.run(1, 20*time.Second, 0, 0)
		if diff := cmp.Diff([]record.Gap{outage}, f.Gaps()); diff != "" {
			t.Errorf("%s (-planted +found):\n%s", name, diff)
		}
	}
}

// TestGapsOfLongSilences: a silence of minutes is one gap, however often the gaps are merged meanwhile, and so is a
// short one of another pod within it.
func TestGapsOfLongSilences(t *testing.T) {
	t.Parallel()
	const end = 200 * time.Second
	gap := func(from, to time.Duration) record.Gap { return record.Gap{From: int64(from), To: int64(to)} }
	for name, c := range map[string]struct{ first, second, want record.Gap }{
		"both pods": {
			gap(10*time.Second, 190*time.Second), gap(10*time.Second, 190*time.Second),
			gap(10*time.Second, 190*time.Second),
		},
		"one of them for a second": {
			gap(10*time.Second, 190*time.Second), gap(30*time.Second, 31*time.Second),
			gap(30*time.Second, 31*time.Second),
		},
	} {
		f := folding{t, newTestSeries(2)}
		for at := testStep; at <= end; at += testStep {
			f.run(0, at, time.Duration(c.first.From), time.Duration(c.first.To))
			f.run(1, at, time.Duration(c.second.From), time.Duration(c.second.To))
		}
		if diff := cmp.Diff([]record.Gap{c.want}, f.Gaps(),
			cmpopts.IgnoreFields(record.Gap{}, "UnprovenHead", "UnprovenTail")); diff != "" {
			t.Errorf("%s (-planted +found):\n%.2000s", name, diff)
		}
	}
}

// TestIdlePartsHaveNoGaps: operations that are not sent any more have no outage, however often the gaps are merged
// meanwhile.
func TestIdlePartsHaveNoGaps(t *testing.T) {
	t.Parallel()
	f := folding{t, newTestSeries(1)}
	for f.until(0) <= 200*time.Second {
		f.add(0, f.until(0), func(iv *record.Interval) {
			if iv.Index < 100 {
				iv.Ops[1].OK = 1
			}
		})
	}
	if gaps := f.OpGaps(1); len(gaps) != 0 {
		t.Errorf("%d gaps, the first is %+v", len(gaps), gaps[0])
	}
}

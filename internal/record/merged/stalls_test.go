package merged

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// The record keeps few of many stalls, and the time of all of them: by pod, also after it was coarsened, stored and
// read again.
func TestTimeOfAllStallsIsKept(t *testing.T) {
	const step, stall = int64(100 * time.Millisecond), int64(40 * time.Millisecond)
	const n = 10 * 3600
	s := New("run", time.Unix(0, 0), time.Duration(step), []string{"get"}, 2)
	for i := range int64(n) {
		for pod := range 2 {
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
			}
			// two threads of the pod, at the same time for 10 ms; the stall began in the interval before
			if pod == 1 && i%2 == 1 {
				begin := i*step - stall/2
				iv.Stalls = []record.Stall{{From: begin, To: begin + stall - 10e6}, {From: begin + stall - 20e6, To: begin + stall}}
			}
			if err := s.Add(pod, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	coarse := reencode(t, s)
	for coarse.Step < time.Second {
		if !coarse.Coarsen("it is coarse") {
			t.Fatal("not coarsened")
		}
	}
	for _, of := range []*Series{s, reencode(t, s), coarse, reencode(t, coarse)} {
		var sums [2]int64
		for i := range of.Len() {
			for pod, ns := range of.At(i).Stalled {
				sums[pod] += ns
			}
		}
		if want := [2]int64{0, n / 2 * stall}; sums != want {
			t.Errorf("steps of %s: %v, want %v", of.Step, sums, want)
		}
	}
	if first, second := s.At(0).Stalled, s.At(1).Stalled; len(first) != 2 || first[1] != stall/2 || second[1] != stall/2 {
		t.Errorf("the first stall is counted as %v and %v, want half of it in each of the intervals that it spans", first,
			second)
	}
}

// A stall near a fault is kept although hundreds of longer ones are not near one.
func TestStallsAroundFaultsAreKept(t *testing.T) {
	const long, short = int64(310 * time.Millisecond), int64(300 * time.Millisecond)
	s := New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	s.Keep("fault", 10*time.Minute, 11*time.Minute)
	kept := []record.Stall{
		{From: int64(10*time.Minute + 20*time.Second), To: int64(10*time.Minute+20*time.Second) + short},
		{From: int64(59 * time.Minute), To: int64(59*time.Minute) + short},
	}
	passing := record.Stall{From: int64(20 * time.Minute), To: int64(20*time.Minute) + short}
	for i := range int64(time.Hour / time.Second) {
		begin := i * int64(time.Second)
		iv := &record.Interval{
			Index:      i,
			Pods:       1,
			Ops:        make([]record.Op, 1),
			FirstError: -1,
			LastError:  -1,
			FirstOK:    -1,
			LastOK:     -1,
			Stalls:     []record.Stall{{From: begin, To: begin + long}},
		}
		for _, one := range append(kept, passing) {
			if one.From == begin {
				iv.Stalls = []record.Stall{one}
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
		stalls := s.Stalls(0)
		if begin == passing.From+int64(time.Minute) && !slices.Contains(stalls, passing) {
			t.Error("a minute later a stall is not kept any more")
		}
		if len(stalls) > MaxStalls+maxSpared {
			t.Fatalf("after %d s there are %d", i, len(stalls))
		}
	}
	for _, one := range kept {
		if !slices.Contains(s.Stalls(0), one) {
			t.Errorf("the stall at %s is not kept", time.Duration(one.From))
		}
	}
	if slices.Contains(s.Stalls(0), passing) {
		t.Error("a short stall far from a fault is kept for ever")
	}
}

package record

import (
	"slices"
	"testing"
	"time"
)

// A stall near a fault is kept although hundreds of longer ones are not near one.
func TestStallsAroundFaultsAreKept(t *testing.T) {
	const long, short = int64(310 * time.Millisecond), int64(300 * time.Millisecond)
	s := NewSeries("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	s.Keep("fault", 10*time.Minute, 11*time.Minute)
	kept := []Stall{{From: int64(10*time.Minute + 20*time.Second), To: int64(10*time.Minute+20*time.Second) + short}, {From: int64(59 * time.Minute), To: int64(59*time.Minute) + short}}
	passing := Stall{From: int64(20 * time.Minute), To: int64(20*time.Minute) + short}
	for i := range int64(time.Hour / time.Second) {
		begin := i * int64(time.Second)
		iv := &Interval{Index: i, Pods: 1, Ops: make([]Op, 1), FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1, Stalls: []Stall{{From: begin, To: begin + long}}}
		for _, one := range append(kept, passing) {
			if one.From == begin {
				iv.Stalls = []Stall{one}
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

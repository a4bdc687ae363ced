package clocks

import (
	"testing"
	"time"
)

func TestWallClockThatWasSet(t *testing.T) {
	const second = int64(time.Second)
	base := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	at := func(seconds int64) time.Time { return base.Add(time.Duration(seconds) * time.Second) }
	for _, tc := range []struct {
		name        string
		by          int64 // seconds, between 100 s and 101 s
		wall        int64 // seconds
		want        int64
		uncertainty int64
	}{
		{"not set", 0, 50, 50, 0},
		{"before it was set", 5, 50, 50, 0},
		{"after it was set", 5, 110, 105, 0},
		{"shown before and after it was set back", -5, 98, 103, 5},
		{"before it was set back", -5, 94, 94, 0},
		{"after it was set back", -5, 104, 109, 0},
		{"read by the process before", 5, -7, -7, 0},
		{"in the future", 5, 150, 145, 0},
	} {
		w := NewWall(base)
		for local := range int64(111) {
			ahead := int64(0)
			if local > 100 {
				ahead = tc.by
			}
			if by := w.Compare(local*second, at(local+ahead)); (by != 0) != (local == 101 && tc.by != 0) {
				t.Errorf("%s: set by %v at %d s", tc.name, time.Duration(by), local)
			}
		}
		local, uncertainty := w.Local(at(tc.wall))
		if local != tc.want*second || uncertainty != tc.uncertainty*second {
			t.Errorf("%s: %v ± %v, want %d s ± %d s", tc.name, time.Duration(local), time.Duration(uncertainty), tc.want,
				tc.uncertainty)
		}
	}
}

package collect

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/truth"
)

func TestMemoryIsDivided(t *testing.T) {
	m := &Memory{Limit: 100}
	a, b, c := &Session{}, &Session{}, &Session{}
	for _, claim := range []struct {
		of   *Session
		used int
		want int
	}{
		{a, 60, 100}, // alone
		{b, 10, 50},  // an equal share, although a uses more
		{a, 60, 90},  // what b leaves
		{c, 30, 33},
		{a, 60, 60},
	} {
		if got := m.claim(claim.of, claim.used); got != claim.want {
			t.Errorf("%d used: may use %d, want %d", claim.used, got, claim.want)
		}
	}
	m.leave(b)
	m.leave(c)
	if got := m.claim(a, 60); got != 100 {
		t.Errorf("alone again: may use %d", got)
	}
}

// TestTruthMemoryOfAllTests: four tests of an hour, of which each alone may use all of the memory, stay within it
// together.
func TestTruthMemoryOfAllTests(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	shared := &Memory{Limit: limit}
	var sessions []*Session
	for range 4 {
		s := openAlone(t, &kept{}, 1, 0)
		s.cfg.Memory = shared
		if err := s.Resume(t.Context(), time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	used := 0
	for from := int64(0); from < 36000; from += 6000 {
		used = 0
		for _, s := range sessions {
			deliver(t, s, 0, from, from+6000)
			if err := s.save(t.Context()); err != nil {
				t.Fatal(err)
			}
			used += s.record.memory()
		}
	}
	// A session stays within its part once it has saved; the part may shrink until it saves again.
	truth.Report(t, "T5", "memory of the records of four tests of an hour, in MiB", fmt.Sprintf("about %d", limit>>20),
		fmt.Sprintf("%.1f", float64(used)/(1<<20)), used <= limit*5/4)
}

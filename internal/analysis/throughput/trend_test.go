package throughput

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

func TestTrend(t *testing.T) {
	if got := Trend(recorded.PerSecond(t), 10); got != "" {
		t.Errorf("empty run: %q", got)
	}
	if got := Trend(recorded.PerSecond(t, 0, 0, 0), 10); got != "▁▁▁" {
		t.Errorf("no success: %q", got)
	}
	if got := Trend(recorded.PerSecond(t, 1000, 500, 0, 1000, 1000), 10); got != "█▅▁██" {
		t.Errorf("short run: %q", got)
	}
	// Answers after the planned end are of requests that waited, and no throughput of their second.
	late := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
	for i, ok := range []uint64{1000, 500, 1500} {
		iv := &record.Interval{Index: int64(i), Ops: make([]record.Op, 1)}
		if iv.Ops[0].OK = ok; i == 2 {
			iv.Ops[0].Drained = 1000
		}
		if err := late.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	if got := Trend(late, 10); got != "█▅▅" {
		t.Errorf("with drained answers: %q", got)
	}
	// One second down in three minutes: 180 s in 24 cells of 7.5 s; 100.3 s is in cell 13.
	got := Trend(recorded.Load{
		Rate:   1000,
		Length: 3 * time.Minute,
		Down:   []summary.Window{{From: 100300 * time.Millisecond, To: 101300 * time.Millisecond}},
	}.Record(t), 24)
	if want := strings.Repeat("█", 13) + "▁" + strings.Repeat("█", 10); got != want {
		t.Errorf("one second down:\n%s, want\n%s", got, want)
	}
}

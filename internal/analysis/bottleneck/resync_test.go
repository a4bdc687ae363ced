package bottleneck

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Full resynchronizations again and again are said; those that a restart of some replicas takes, or that came within a
// fault, are not.
func TestResyncs(t *testing.T) {
	const seconds = 20
	for _, tt := range []struct {
		name     string
		replicas int64
		at       func(second int64) int64 // full resynchronizations until then
		faults   []summary.Window
		want     string // "" = nothing is said
	}{
		{"none", 1, func(int64) int64 { return 7 }, nil, ""},
		{
			"one every other second", 1, func(s int64) int64 { return s / 2 }, nil,
			"the primary at redis:6379 started 9 full resynchronizations of its replicas in 19s; they did not all follow in " +
				"19 of 19 readings (replica:6379 followed in 0): what is written",
		},
		{"one every other second, and a counter of the limit", 1, func(s int64) int64 {
			return s /
				2
		}, nil, "because of client-output-buffer-limit"},
		{"three replicas that restart", 3, func(s int64) int64 { return min(3, max(0, s-8)) }, nil, ""},
		{"three replicas that restart twice", 3, func(s int64) int64 { return min(6, max(0, s-8)) }, nil, ""},
		{"four at an instant", 1, func(s int64) int64 { return 4 * min(1, max(0, s-8)) }, nil, ""},
		{"in a fault", 1, func(s int64) int64 {
			return min(6,
				max(0, s-8))
		}, []summary.Window{{From: 7 * time.Second, To: 16 * time.Second}}, ""},
	} {
		s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
		for i := range int64(seconds * 10) {
			iv := idle().interval(i, 0)
			for k := range iv.Servers {
				one := &iv.Servers[k]
				one.FullSyncs, one.Replicas = tt.at(i/10), tt.replicas
				if strings.Contains(tt.name, "counter") {
					one.BufferedClients = one.FullSyncs
				}
				iv.Servers = append(iv.Servers, record.Server{
					At:          one.At,
					Address:     "replica:6379",
					RunID:       "other",
					PrimaryLink: record.LinkDown,
				})
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		got := strings.Join(Resyncs(Input{Series: s, Without: tt.faults}), "\n")
		if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

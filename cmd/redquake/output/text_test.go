package output

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/result"
)

func written(t *testing.T, r *result.Load) string {
	t.Helper()
	var text strings.Builder
	if err := WriteText(&text, r); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestWorstShardIsListedFirst(t *testing.T) {
	r := quiet()
	r.Shards = []result.Shard{{Shard: 0, OK: 50, Throughput: 5}, {Shard: 1, OK: 40, Errors: 10, Throughput: 4, LongestGap: ms(2400), AtLeast: ms(2400), AtMost: ms(2400)}}
	if text := written(t, r); !strings.Contains(text, "Shard 1     4/s, errors 10, longest gap 2.4s\nShard 0     5/s, errors 0, no gap\n") {
		t.Errorf("the worst shard does not come first:\n%s", text)
	}
}

// The tallies of a workload are shown as figures, for example a hit ratio.
func TestFiguresOfTheWorkload(t *testing.T) {
	r := quiet()
	mean := result.Seconds(3 * time.Millisecond)
	r.Workload = []result.Figure{{Name: "hits", Count: new(uint64(18))}, {Name: "hitRatio", Share: new(0.9)}, {Name: "databaseTime", Seconds: &mean}}
	if text := written(t, r); !strings.Contains(text, "Workload    hits 18, hitRatio 90%, databaseTime 3ms\n") {
		t.Errorf("the figures of the workload are missing:\n%s", text)
	}
}

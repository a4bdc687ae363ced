package anomaly

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record/merged"
)

// breakageOutage is for how long requests must have waited in vain for a sign that something broke
// Redis.
const breakageOutage = 250 * time.Millisecond

// Breakage is the first sign in a load that something broke Redis.
type Breakage struct {
	At  time.Duration // from the start of the run
	Why string
}

// BreakageSince returns the first sign from an instant on, and outside of exclude: the begin of an
// outage, of the load, its reads, its writes or a shard, in which requests have waited in vain for
// 250 ms, or of an anomaly. An anomaly begins with the first gap in it; without one, to the second.
func BreakageSince(
	s *merged.Series, since time.Duration, o impact.Options, exclude []summary.Window,
) (Breakage, bool) {
	o = o.WithDefaults()
	from := max(o.MeasuredFrom, since-o.BaselineWindow)
	s = s.Fine(from, s.End())
	outages := outagesOf(s, from, since, exclude)
	var first *Breakage
	note := func(at time.Duration, why string) {
		if at = max(at, since); first == nil || at < first.At {
			first = &Breakage{at, why}
		}
	}
	for _, g := range outages {
		if g.Length.AtLeast >= breakageOutage {
			note(time.Duration(g.From),
				fmt.Sprintf("an outage in which requests waited in vain for at least %s so far",
					g.Length.AtLeast.Round(time.Millisecond)))
		}
	}
	for _, a := range Anomalies(s, from, o.Planned, exclude) {
		if a.At+throughput.Second <= since {
			continue
		}
		at := a.At
		if i := slices.IndexFunc(outages, func(g gaps.Bounded) bool {
			return time.Duration(g.To) > a.At-throughput.Second && time.Duration(g.From) < a.At+a.Length
		}); i >= 0 {
			at = time.Duration(outages[i].From)
		}
		note(at,
			fmt.Sprintf(
				"an anomaly: the throughput was %.0f %% below the usual %.0f requests/s for %s so far",
				100*a.Depth, a.Usual, a.Length.Round(time.Millisecond)))
	}
	if first == nil {
		return Breakage{}, false
	}
	return *first, true
}

// outagesOf are the gaps in which a request waited in vain that end after since, and that begin
// neither before it nor within exclude, in order of their begin.
func outagesOf(
	s *merged.Series, from, since time.Duration, exclude []summary.Window,
) []gaps.Bounded {
	all := gaps.New(s, from, s.End())
	list := slices.Concat(all.Load(), all.Kind(impact.Reads), all.Kind(impact.Writes))
	for shard := range s.Shards() {
		list = append(list, all.Shard(shard)...)
	}
	list = slices.DeleteFunc(list, func(g gaps.Bounded) bool {
		w := summary.Window{From: time.Duration(g.From), To: time.Duration(g.To)}
		return g.Length.AtLeast <= 0 || w.From < since || overlaps(exclude, w)
	})
	slices.SortStableFunc(list, func(a, b gaps.Bounded) int { return int(a.From - b.From) })
	return list
}

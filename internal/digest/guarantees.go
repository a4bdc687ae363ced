package digest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// Guarantees are what the load pods of a load that began at start have found, as the status has it.
func Guarantees(g *record.Guarantees, start time.Time) *v1alpha1.Guarantees {
	out := &v1alpha1.Guarantees{Untold: Truncate(g.Untold, 512)}
	if l := g.Lock; l != nil {
		out.Lock = &v1alpha1.LockFigures{
			Taken:          int64(l.Taken),
			Overlaps:       int64(l.Overlaps),
			LongestOverlap: v1alpha1.DurationOf(time.Duration(l.Overlap)),
			Lost:           int64(l.Lost),
			Expired:        int64(l.Expired),
			Unreplicated:   int64(l.Unreplicated),
			LongestUnheld:  v1alpha1.DurationOf(time.Duration(l.Unheld)),
		}
		if l.Overlaps > 0 {
			out.Lock.FirstOverlap = instant(start, l.FirstOverlap)
			out.Lock.LastOverlap = instant(start, l.LastOverlap)
		}
		if l.FencesBack != nil {
			out.Lock.FencesBackwards = new(int64(*l.FencesBack))
		}
	}
	return out
}

// instant is a time so many ns after the start.
func instant(start time.Time, at int64) *metav1.MicroTime {
	return &metav1.MicroTime{Time: start.Add(time.Duration(at)).UTC().Truncate(time.Microsecond)}
}

// GuaranteesOf is the opposite of Guarantees: only the status keeps them when the load pods are
// released; nil = there are none.
func GuaranteesOf(g *v1alpha1.Guarantees, start time.Time) *result.Guarantees {
	if g == nil {
		return nil
	}
	out := &result.Guarantees{Untold: g.Untold}
	if l := g.Lock; l != nil {
		out.Lock = &result.Lock{
			Taken:           uint64(l.Taken),
			Overlaps:        uint64(l.Overlaps),
			LongestOverlap:  result.Seconds(l.LongestOverlap.Duration),
			Lost:            uint64(l.Lost),
			Expired:         uint64(l.Expired),
			Unreplicated:    uint64(l.Unreplicated),
			LongestUnheld:   result.Seconds(l.LongestUnheld.Duration),
			FencesBackwards: counted(l.FencesBackwards),
		}
		if l.FirstOverlap != nil && l.LastOverlap != nil {
			out.Lock.FirstOverlap = result.Seconds(l.FirstOverlap.Sub(start))
			out.Lock.LastOverlap = result.Seconds(l.LastOverlap.Sub(start))
		}
	}
	return out
}

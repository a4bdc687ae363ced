package merged

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/silence"
	"github.com/redquake/redquake/internal/testing/intervals"
)

const testStep = intervals.Step

// sameSeries compares everything a Series holds.
var sameSeries = cmp.Options{
	cmp.Exporter(func(t reflect.Type) bool { return strings.Contains(t.PkgPath(), "/internal/record") }),
	cmpopts.IgnoreFields(common{}, "pending", "foldAt"),
	cmpopts.IgnoreFields(silence.Stream{}, "Known"),
	cmpopts.IgnoreFields(podRecord{}, "settled"),
	// What is computed again.
	cmp.FilterPath(func(p cmp.Path) bool {
		field, ok := p.Last().(cmp.StructField)
		return ok && strings.HasSuffix(p.Index(-2).Type().PkgPath(), "/readings") &&
			(field.Name() == "first" || field.Name() == "busy")
	}, cmp.Ignore()),
	cmpopts.EquateEmpty(),
}

// difference returns that of cmp.Diff. It compares with reflect first, which is twenty times faster if the values are
// equal.
func difference(want, got any, options ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, options...)
}

// world contains the records of several pods, of different lengths.
func world(r *rand.Rand, pods, n int) [][]*record.Interval {
	w := make([][]*record.Interval, pods)
	for p := range w {
		w[p] = intervals.OfPod(r, n+r.IntN(5))
	}
	return w
}

func newTestSeries(pods int) *Series {
	s := New("run-1", time.Date(2026, 5, 4, 3, 2, 1, 7, time.UTC), testStep, intervals.Ops, pods)
	s.SetTallies(intervals.Tallies)
	return s
}

// deliver adds all remaining intervals of w, in a random order of the pods, and sometimes calls between.
func deliver(r *rand.Rand, s *Series, w [][]*record.Interval, then func()) {
	for {
		var left []int
		for p := range w {
			if s.Next(p) < int64(len(w[p])) {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return
		}
		p := left[r.IntN(len(left))]
		if err := s.Add(p, w[p][s.Next(p)]); err != nil {
			panic(err)
		}
		if then != nil {
			then()
		}
	}
}

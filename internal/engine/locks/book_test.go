package locks

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
)

// truthOf looks at all pairs of spans of each lock, and at each stretch between the ends of all earlier ones and the
// next begin.
func truthOf(spans [][]span, end int64) *record.Lock {
	sum := &record.Lock{}
	for _, all := range spans {
		all = slices.Clone(all)
		slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.until, b.until)) })
		sum.Taken += uint64(len(all))
		for i, s := range all {
			until := int64(-1)
			for _, o := range all[:i] {
				until = max(until, o.until)
			}
			switch {
			case i == 0:
			case until <= s.from:
				sum.Unheld = max(sum.Unheld, s.from-until)
			case min(until, s.until) > s.from:
				sum.AddOverlap(s.from, min(until, s.until))
			}
		}
		if len(all) > 0 {
			until := slices.MaxFunc(all, func(a, b span) int { return cmp.Compare(a.until, b.until) }).until
			sum.Unheld = max(sum.Unheld, end-until)
		}
	}
	return sum
}

// Histories of holders, told in any order in which a minute has not passed, come to what all pairs of them come to.
func TestBook(t *testing.T) {
	for seed := range uint64(150) {
		draw := rand.New(rand.NewPCG(seed, 1))
		count := 1 + draw.IntN(3)
		b, spans := NewBook(count), make([][]span, count)
		type told struct {
			number int
			span
			end int64 // of the load, when it is told
		}
		var all []told
		at := int64(0)
		stuck := seed%3 == 0 // a user that took a lock first never says any more of it
		many := 1 + draw.IntN(40)
		if seed%50 == 0 {
			many = 6_000 // so many that the first are folded
		}
		for range many {
			at += draw.Int64N(100_000_000)
			s := span{from: at, until: at + draw.Int64N(150_000_000)}
			number := draw.IntN(count)
			spans[number] = append(spans[number], s)
			all = append(all, told{number, s, s.until + draw.Int64N(foldBefore/4)})
		}
		slices.SortStableFunc(all, func(a, b told) int { return cmp.Compare(a.from, b.from) })
		begun := slices.Clone(all)
		slices.SortStableFunc(all, func(a, b told) int { return cmp.Compare(a.end, b.end) })
		end := int64(0)
		first := slices.MinFunc(all, func(a, b told) int { return cmp.Compare(a.from, b.from) })
		for _, one := range all {
			for len(begun) > 0 && begun[0].from <= one.end {
				b.Take(begun[0].number, begun[0].from, begun[0].until, 0)
				begun = begun[1:]
			}
			if !stuck || one != first {
				b.Leave(one.number, one.from, one.until, Released)
			}
			end = max(end, one.until)
		}
		if seed%50 == 0 && len(b.locks[0].ended) > 5_000 {
			t.Errorf("seed %d: %d spans are kept", seed, len(b.locks[0].ended))
		}
		end += draw.Int64N(1_000_000_000)
		got := b.Result(end)
		got.Expired = 0 // the stuck user, if much was folded
		if diff := gocmp.Diff(truthOf(spans, end), got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestEndsAndFences(t *testing.T) {
	b := NewBook(1)
	for i, end := range []End{Released, Lost, Expired, Lost} {
		at := int64(10 * (i + 1))
		b.Take(0, at, at+100, []int64{1, 2, 2, 1}[i])
		b.Leave(0, at, at+10, end)
	}
	b.GiveUp()
	b.Leave(0, 99, 100, Lost) // nobody has taken it
	want := &record.Lock{Taken: 4, Lost: 2, Expired: 1, Unreplicated: 1, FencesBack: new(uint64(2))}
	if diff := gocmp.Diff(want, b.Result(50)); diff != "" {
		t.Error(diff)
	}
}

package record

import (
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
)

func TestMergeInAnyOrder(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	var results []*Ledger
	for i := range 7 {
		r := &Ledger{
			Acked:          draw.Uint64N(100),
			Failed:         draw.Uint64N(9),
			Unknown:        draw.Uint64N(9),
			UnknownPresent: 1,
			FailedPresent:  2,
			Errors:         draw.Uint64N(9),
			Replicas:       i,
			Evictions:      map[string]Evictions{"a": {Keys: uint64(i)}, strconv.Itoa(i): {Keys: 1, Final: true}},
			ReplicaMissing: 1,
			Unique:         i == 3,
			Settings:       "s",
			Notes:          []string{"same", strconv.Itoa(i)},
		}
		if i%2 == 0 {
			r.Lost, r.FirstLost, r.LastLost = 3, 100+draw.Int64N(100), 300+draw.Int64N(100)
			r.Losses = []Loss{
				{First: r.FirstLost, Last: r.FirstLost + 1, Count: 1},
				{First: 5e9, Last: 6e9 + int64(i)*3e9, Count: 2, Errors: 1},
			}
			r.Stale = &Staleness{
				Reads:        5,
				Stale:        1,
				MaxWrites:    draw.Uint64N(9),
				MaxBehind:    draw.Int64N(9),
				NonMonotonic: 1,
				RolledBack:   1,
			}
			r.Dual = &DualPrimary{Writes: uint64(i), First: 50 + int64(i), Last: 60 + int64(i)}
		}
		results = append(results, r)
	}
	want := MergeLedgers(results...)
	if want.Lost != 12 || want.FirstLost < 100 || want.FirstLost >= 200 || want.LastLost < 300 || want.Stale.Reads != 20 ||
		want.Dual.First != 52 || want.Dual.Last != 66 || len(want.Notes) != 8 || !want.Unique {
		t.Errorf("%+v %+v %+v", *want, *want.Stale, *want.Dual)
	}
	for range 20 {
		draw.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		half := draw.IntN(len(results))
		if got := MergeLedgers(MergeLedgers(results[half:]...), nil,
			MergeLedgers(results[:half]...)); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", *got, *want)
		}
	}
	if results[0].Acked >= want.Acked && want.Acked > 100 {
		t.Error("an argument was changed")
	}
}

func TestLossesAreJoined(t *testing.T) {
	got := JoinLosses([]Loss{
		{First: 3e9, Last: 4e9, Count: 2},
		{First: 0, Last: 1e9, Count: 1},
		{First: 1.5e9, Last: 1.6e9, Count: 4, Errors: 1},
	})
	want := []Loss{{First: 0, Last: 1.6e9, Count: 5, Errors: 1}, {First: 3e9, Last: 4e9, Count: 2}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	var many []Loss
	for i := range int64(100) {
		many = append(many, Loss{First: i * 2e9, Last: i * 2e9, Count: 1})
	}
	if got := JoinLosses(many); len(got) > MaxLosses || got[0].First != 0 || got[len(got)-1].Last != 198e9 {
		t.Errorf("%+v", got)
	}
	if got := JoinLosses(nil); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestMergeOfNothing(t *testing.T) {
	if got := MergeLedgers(nil, nil); got != nil {
		t.Errorf("%+v", *got)
	}
}

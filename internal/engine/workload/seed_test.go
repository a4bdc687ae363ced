package workload

import (
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/plan"
)

// drawn are the operations and keys that source number of a run with a seed draws first.
func drawn(t *testing.T, seed uint64, number, of int64, n int) (operations []int, keys []int64) {
	w := made(t, plan.Workload{
		Commands: []plan.Command{
			{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
			{Name: "get", Weight: 3, Words: []string{"GET", "{key}"}},
		},
		Keyspace: plan.Keyspace{Keys: 100_000, Distribution: plan.Uniform},
		Values:   plan.Values{MinBytes: 1, MaxBytes: 100},
		Seed:     seed,
	})
	s := w.Source(number, of, false)
	for range n {
		r := Request{}
		s.Draw(s.Pick(), &r)
		_, _ = s.Append(nil, &r)
		operations, keys = append(operations, r.Op), append(keys, r.Key)
	}
	return operations, keys
}

// TestSeedRepeatsTheDraws: one seed and number give the same draws.
func TestSeedRepeatsTheDraws(t *testing.T) {
	firstOps, first := drawn(t, 7, 3, 8, 1000)
	secondOps, second := drawn(t, 7, 3, 8, 1000)
	if !slices.Equal(first, second) || !slices.Equal(firstOps, secondOps) {
		t.Error("the same seed draws other requests the second time")
	}
}

// TestRunsDrawIndependently: other seeds, and other sources of a run, draw other keys: of twice 5,000 draws of 100,000
// keys about 9,516 differ.
func TestRunsDrawIndependently(t *testing.T) {
	type run struct {
		seed   uint64
		number int64
	}
	for _, pair := range [][2]run{
		{{1, 0}, {2, 0}},
		{{1, 0}, {1, 1}},
		{{1, 1}, {2, 0}},
		{{1 << 52, 0}, {1<<52 + 1, 0}},
		{{41, 1}, {42, 1}},
	} {
		firstOps, first := drawn(t, pair[0].seed, pair[0].number, 2, 5000)
		secondOps, second := drawn(t, pair[1].seed, pair[1].number, 2, 5000)
		distinct := map[int64]bool{}
		same := 0
		for i := range first {
			distinct[first[i]], distinct[second[i]] = true, true
			if firstOps[i] == secondOps[i] {
				same++
			}
		}
		if n := len(distinct); n < 9400 || n > 9630 {
			t.Errorf("%v draw %d different keys, want about 9516", pair, n)
		}
		// by chance 1/16 + 9/16 of them
		if same < 2900 || same > 3350 {
			t.Errorf("%v choose the same operation %d times of 5000, want about 3125", pair, same)
		}
	}
}

// TestArrivalsOfSeeds: the operations of arrivals differ between seeds as well, and keep their weights.
func TestArrivalsOfSeeds(t *testing.T) {
	spec := plan.Workload{Commands: []plan.Command{
		{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
		{Name: "get", Weight: 3, Words: []string{"GET", "{key}"}},
	}, Keyspace: plan.Keyspace{Keys: 1, Distribution: plan.Uniform}}
	of := func(seed uint64) (operations []int) {
		spec.Seed = seed
		w := made(t, spec)
		for i := range int64(4000) {
			operations = append(operations, w.OperationOf(i))
		}
		return operations
	}
	one, two := of(1), of(2)
	if !slices.Equal(one, of(1)) {
		t.Error("the same seed gives arrivals other operations the second time")
	}
	same, gets, shifted := 0, 0, 0
	for i := range one {
		gets += one[i]
		if one[i] == two[i] {
			same++
		}
		if i > 0 && one[i] == two[i-1] {
			shifted++
		}
	}
	if gets < 2900 || gets > 3100 || same < 2380 || same > 2620 || shifted < 2380 || shifted > 2620 {
		t.Errorf("%d GETs, %d and %d operations in common: want about 3000, 2500 and 2500", gets, same, shifted)
	}
}

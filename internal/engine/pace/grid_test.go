package pace

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
)

// TestGrid draws loads, puts their arrivals on a grid, and compares each with its exact instant, and the counts with
// those of the arrivals that it finds.
func TestGrid(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		pods, loops := 1+random.IntN(3), int64(1+random.IntN(3))
		rate := math.Exp(math.Log(1000) + random.Float64()*math.Log(200))
		shape := plan.Shape{Stages: []plan.Stage{
			{Duration: 31 * time.Millisecond, Rate: rate},
			{Duration: 40 * time.Millisecond, Rate: rate * random.Float64()},
			{Duration: 50 * time.Millisecond, Rate: rate / 3},
		}}
		of := planOf(shape, pods)
		if random.IntN(2) == 0 {
			of = randomly(shape, pods, random.Uint64())
		}
		pod := random.IntN(pods)
		exact := NewPacer(of, pod)
		grid := exact.OnGrid(loops, 200*loops)
		if at := time.Duration(random.Int64N(60e6)); random.IntN(2) == 0 {
			exact = exact.Step(at, 100*time.Millisecond, rate/2)
			grid = grid.Step(at, 100*time.Millisecond, rate/2)
		}
		perLoop := rate / float64(pods) / float64(loops)
		if perLoop < 7900 && grid.tick != 0 || perLoop > 8100 && grid.tick == 0 || grid.tick > longestTick {
			t.Fatalf("with %.0f/s in a loop a tick is %d ns", perLoop, grid.tick)
		}
		checkGrid(t, exact, grid, loops)
		for range 20 {
			at := random.Int64N(130e6)
			counted := int64(0)
			for counted < grid.Total && grid.Due(counted) < at {
				counted++
			}
			// rounding may move an exact arrival by a nanosecond, and so by a tick
			if n := grid.Arrivals(at); max(n-counted, counted-n) > 1 {
				t.Fatalf("%d arrivals are due before %d, %d are counted", n, at, counted)
			}
		}
	}
}

// checkGrid: an arrival is due in its tick, as far from its begin as its share of the train, unless the load or a step
// began later; and no tick has many.
func checkGrid(t *testing.T, exact, grid *Pacer, loops int64) {
	t.Helper()
	if exact.Arrivals(math.MaxInt64) != grid.Arrivals(math.MaxInt64) {
		t.Fatalf("%d arrivals, on the grid %d", exact.Arrivals(math.MaxInt64), grid.Arrivals(math.MaxInt64))
	}
	number, inTick, last := int64(-1), int64(0), int64(0)
	for i := int64(0); exact.Due(i) != math.MaxInt64; i++ {
		want, due := exact.Due(i), grid.Due(i)
		if due < last || due > want {
			t.Fatalf("arrival %d is due at %d, without a grid at %d, the one before at %d", i, due, want, last)
		}
		last = due
		if grid.tick == 0 {
			if due != want {
				t.Fatalf("arrival %d is due at %d, want %d", i, due, want)
			}
			continue
		}
		begin := grid.phase + (want-grid.phase+grid.tick)/grid.tick*grid.tick - grid.tick
		share := float64(want-begin) / float64(grid.tick) * float64(grid.train)
		if now := float64(due - begin); math.Abs(now-share) > 1 && due != 0 && due != int64(grid.Stepped) {
			t.Fatalf("arrival %d is due %.0f ns after the begin of its tick, want %.0f", i, now, share)
		}
		if begin != number {
			number, inTick = begin, 0
		}
		if inTick++; exact.random == nil && inTick > (mostPerTick+1)*loops {
			t.Fatalf("%d arrivals are in the tick from %d on", inTick, begin)
		}
	}
}

// The pods of a run do not send at the same instants, and a loop with few connections has small ticks or none.
func TestGridsOfPods(t *testing.T) {
	of := planOf(plan.Shape{Rate: 40_000, Duration: time.Second}, 4)
	begins := map[int64]int{}
	for pod := range 4 {
		p := NewPacer(of, pod).OnGrid(1, 50)
		begins[p.phase] = pod
	}
	if len(begins) != 4 {
		t.Errorf("the ticks of four pods begin at %v", begins)
	}
	p := NewPacer(of, 0)
	if few, none := p.OnGrid(1, 16).tick, p.OnGrid(1, 12).tick; few != 400_000 || none != 0 {
		t.Errorf("with 16 requests in flight a tick is %d ns, with 12 %d", few, none)
	}
}

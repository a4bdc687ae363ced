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
		if perLoop < 3950 && grid.tick != 0 || perLoop > 4050 && grid.tick == 0 || grid.tick > longestTick {
			t.Fatalf("with %.0f/s in a loop a tick is %d ns", perLoop, grid.tick)
		}
		due := checkGrid(t, exact, grid)
		for range 20 {
			from := random.Int64N(130e6)
			to := from + random.Int64N(130e6)
			counted := int64(0)
			for _, at := range due {
				if from <= at && at < to {
					counted++
				}
			}
			yielded := int64(0)
			for range grid.Between(from, to) {
				yielded++
			}
			// rounding may move an exact arrival of a loop by a nanosecond, and so over an end
			n := grid.Arrivals(to) - grid.Arrivals(from)
			if max(n-counted, counted-n) > 2*loops || yielded != n {
				t.Fatalf("%d arrivals are due from %d to %d, %d are counted and %d yielded", counted, from, to, n, yielded)
			}
		}
	}
}

// checkGrid: an arrival is due in its loop's tick, as far from its begin as its share of the train, unless the load or a
// step began later; and no tick has many. It returns when each is due.
func checkGrid(t *testing.T, exact, grid *Pacer) (all []int64) {
	t.Helper()
	if exact.Arrivals(math.MaxInt64) != grid.Arrivals(math.MaxInt64) {
		t.Fatalf("%d arrivals, on the grid %d", exact.Arrivals(math.MaxInt64), grid.Arrivals(math.MaxInt64))
	}
	last, inTick := make([]int64, grid.loops), map[[2]int64]int{}
	for i := int64(0); exact.Due(i) != math.MaxInt64; i++ {
		loop, want, due := i%grid.loops, exact.Due(i), grid.Due(i)
		all = append(all, due)
		if due < last[loop] || due > want {
			t.Fatalf("arrival %d is due at %d, without a grid at %d, the one before at %d", i, due, want, last[loop])
		}
		last[loop] = due
		if grid.tick == 0 {
			if due != want {
				t.Fatalf("arrival %d is due at %d, want %d", i, due, want)
			}
			continue
		}
		phase := grid.phase(loop)
		begin := phase + (want-phase+grid.tick)/grid.tick*grid.tick - grid.tick
		share := float64(want-begin) / float64(grid.tick) * float64(grid.train)
		if now := float64(due - begin); math.Abs(now-share) > 1 && due != 0 && due != int64(grid.Stepped) {
			t.Fatalf("arrival %d is due %.0f ns after the begin of its tick, want %.0f", i, now, share)
		}
		tick := [2]int64{loop, begin}
		if inTick[tick]++; exact.random == nil && inTick[tick] > mostPerTick+1 {
			t.Fatalf("%d arrivals of loop %d are in the tick from %d on", inTick[tick], loop, begin)
		}
	}
	return all
}

// The loops and pods of a run do not send at the same instants, and a loop with few connections has small ticks or none,
// at any rate.
func TestGridsOfPods(t *testing.T) {
	of := planOf(plan.Shape{Rate: 80_000, Duration: time.Second}, 4)
	begins := map[int64]bool{}
	for pod := range 4 {
		p := NewPacer(of, pod).OnGrid(2, 100)
		for loop := range p.loops {
			begins[p.phase(loop)] = true
		}
	}
	if len(begins) != 8 {
		t.Errorf("the ticks of two loops of four pods begin at %v", begins)
	}
	for _, rate := range []float64{10_000, 11_000, 30_000, 77_777} {
		p := NewPacer(planOf(plan.Shape{Rate: rate, Duration: time.Second}, 1), 0)
		few, none := p.OnGrid(1, 16).tick, p.OnGrid(1, 7).tick
		if perTick := rate * float64(few) / 1e9; perTick < 4 || perTick > 4.1 || none != 0 {
			t.Errorf("at %.0f/s a tick has %.2f arrivals with 16 requests in flight, and is %d ns long with 7", rate, perTick,
				none)
		}
	}
}

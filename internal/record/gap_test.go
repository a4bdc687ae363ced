package record

import (
	"math/rand/v2"
	"testing"
)

func TestOverlapNarrowsBounds(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		name string
		a, b Gap
		want Gap
	}{
		{name: "exact", a: Gap{From: 100, To: 500}, b: Gap{From: 200, To: 600}, want: Gap{From: 200, To: 500}},
		{
			name: "a late reader's last success can have come before the other's",
			a:    Gap{From: 100, To: 500},
			b:    Gap{From: 200, To: 500, MaybeBefore: 150},
			want: Gap{From: 200, To: 500, MaybeBefore: 100},
		},
		{
			name: "a late reader's first success can have come before the other's",
			a:    Gap{From: 100, To: 500},
			b:    Gap{From: 100, To: 550, MaybeSooner: 90},
			want: Gap{From: 100, To: 500, MaybeSooner: 40, UnprovenTail: 40},
		},
		{
			name: "one of them was waiting",
			a:    Unproven(100, 500),
			b:    Gap{From: 150, To: 500, UnprovenHead: 20},
			want: Gap{From: 150, To: 500, UnprovenHead: 20},
		},
		{name: "none was waiting", a: Unproven(100, 500), b: Unproven(150, 450), want: Unproven(150, 450)},
		{
			name: "one at first, the other then",
			a:    Gap{From: 100, To: 500, UnprovenTail: 150},
			b:    Gap{From: 100, To: 500, UnprovenHead: 250},
			want: Gap{From: 100, To: 500},
		},
		{
			name: "the proof of one ends where the other's success can have come",
			a:    Gap{From: 100, To: 500},
			b:    Gap{From: 100, To: 520, MaybeSooner: 60, UnprovenHead: 420},
			want: Gap{From: 100, To: 500, MaybeSooner: 40, UnprovenTail: 40},
		},
		{
			name: "proofs too far apart do not add up",
			a:    Gap{From: 0, To: 500 * ms, UnprovenTail: 350 * ms},
			b:    Gap{From: 0, To: 500 * ms, UnprovenHead: 300 * ms},
			want: Gap{From: 0, To: 500 * ms, UnprovenHead: 300 * ms},
		},
	} {
		for name, got := range map[string][]Gap{
			c.name:               Overlap([]Gap{c.a}, []Gap{c.b}),
			c.name + ", swapped": Overlap([]Gap{c.b}, []Gap{c.a}),
		} {
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("%s: expected %+v, got %+v", name, c.want, got)
			}
		}
	}
}

// The truth lies within the bounds of clients that read late, in whatever way their knowledge is merged.
func TestOverlapKeepsTheTruthWithinTheBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		down, up := 1000+r.Int64N(1000), 3000+r.Int64N(1000) // the server answers nothing in [down, up)
		var merged []Gap
		for i := range 1 + r.IntN(4) {
			last, first := r.Int64N(down), up+r.Int64N(1000) // instants at which the last and the first success arrived
			readLast, readFirst := last+r.Int64N(down-last), first+r.Int64N(500)
			looked, waiting := up-500+r.Int64N(500), down+r.Int64N(1500)
			if r.IntN(4) == 0 {
				waiting = down + r.Int64N(3000)
			}
			g := Gap{
				From:         readLast,
				To:           readFirst,
				MaybeBefore:  readLast - last,
				MaybeSooner:  readFirst - min(looked, first),
				UnprovenHead: waiting - readLast,
			}
			if i == 0 {
				merged = []Gap{g}
			} else {
				merged = Overlap(merged, []Gap{g})
			}
		}
		if len(merged) != 1 {
			t.Fatalf("%d gaps", len(merged))
		}
		g := merged[0]
		if truth := up - down; g.AtLeast(0) > truth || g.AtMost() < truth || g.AtLeast(0) > g.To-g.From ||
			g.AtMost() < g.To-g.From {
			t.Fatalf("truth %d, bounds %d to %d, value %d: %+v", truth, g.AtLeast(0), g.AtMost(), g.To-g.From, g)
		}
		if g.MaybeBefore < 0 || g.MaybeSooner < 0 || g.UnprovenHead < 0 || g.UnprovenTail < 0 {
			t.Fatalf("negative bounds: %+v", g)
		}
	}
}

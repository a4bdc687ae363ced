package record

// Gap is a period without a success: From is the last success before it (or 0, the start), To the
// first success after it, in nanoseconds since T. Open means that the record ended at To without
// another success.
//
// The other fields, all >= 0, tell what is not known about it; zero is an exact and wholly proven
// gap. A reply that was read at an instant can have arrived before it, and a server without a
// request to answer can have been up or down.
type Gap struct {
	From, To int64
	Open     bool

	MaybeBefore int64 // the last success can have arrived so much before From
	MaybeSooner int64 // the first success after it can have arrived so much before To
	// The gap is proven where a request was unanswered or failed: all of it but UnprovenHead at its
	// begin and UnprovenTail at its end.
	UnprovenHead, UnprovenTail int64
}

// AtMost is the longest that the gap can have been. A success of any client ends an outage, so
// nothing else can make it longer.
func (g Gap) AtMost() int64 {
	return g.To - g.From + g.MaybeBefore
}

// AtLeast is the shortest that the gap can have been, for a server that answers every request
// within the time usual: for so long, less usual, a request waited in vain.
func (g Gap) AtLeast(usual int64) int64 {
	return max(0, g.To-g.From-g.UnprovenHead-max(g.UnprovenTail, g.MaybeSooner)-usual)
}

// Bridge is the longest pause between two proofs of a gap (a failed request and the next one) that
// does not interrupt them, in nanoseconds: clients that redial pause for as long, and a server does
// not come and go in between.
const Bridge = int64(100e6)

// Proven returns the gap with the part from one instant to another proven; without such a part from
// equals to.
func (g Gap) Proven(from, to int64) Gap {
	return g.proven(span{from, to})
}

// OpenAt returns the part of the gap before the record's end. A last success that was read after
// the end can have arrived before it: nothing but this doubt remains of its gap.
func (g Gap) OpenAt(end int64) Gap {
	over, late := g.To-end, max(0, g.From-end)
	g.Open, g.From, g.To = true, g.From-late, end
	g.MaybeBefore = max(0, g.MaybeBefore-late)
	g.MaybeSooner = max(0, g.MaybeSooner-over)
	g.UnprovenTail = max(0, g.UnprovenTail-over)
	g.UnprovenHead = min(g.UnprovenHead, g.To-g.From)
	return g
}

// Divide returns the two parts of the gap before and after successes that arrived in it, but were
// read after it: at hi at the latest, the first at lo and the last at surely at the earliest.
// Nothing is proven of the second part: what seemed to wait in it may have been answered then, too,
// and not been read.
func (g Gap) Divide(lo, surely, hi int64) (before, after Gap) {
	before = Gap{
		From:        g.From,
		To:          hi,
		MaybeBefore: g.MaybeBefore,
		MaybeSooner: hi - lo,
	}
	after = Gap{
		From:        hi,
		To:          g.To,
		Open:        g.Open,
		MaybeBefore: max(0, hi-surely),
		MaybeSooner: g.MaybeSooner,
	}
	return before.proven(g.proof(g.From, lo)), after.proven(span{})
}

// Unproven returns a period in which nothing proves that the server was down, because nothing was
// sent.
func Unproven(from, to int64) Gap {
	return Gap{
		From:         from,
		To:           to,
		UnprovenHead: to - from,
	}
}

// Overlap returns the intersections of two lists of gaps: what neither of two clients could reach.
// Both lists are ascending and disjoint, and so is the result.
func Overlap(a, b []Gap) []Gap {
	var both []Gap
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if max(a[i].From, b[j].From) < min(a[i].To, b[j].To) {
			both = append(both, a[i].intersect(b[j]))
		}
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return both
}

// intersect merges what two clients know about the period in which both had no success. Each
// instant of one narrows what the other knows, and either of them can prove it.
func (g Gap) intersect(o Gap) Gap {
	both := Gap{From: max(g.From, o.From), To: min(g.To, o.To)}
	began := max(g.From-g.MaybeBefore, o.From-o.MaybeBefore)
	ended := min(g.To-g.MaybeSooner, o.To-o.MaybeSooner)
	both.MaybeBefore = max(0, both.From-began)
	both.MaybeSooner = max(0, both.To-ended)
	both.Open = g.Open && both.To == g.To || o.Open && both.To == o.To
	return both.proven(connect(g.proof(both.From, min(both.To, ended)),
		o.proof(both.From, min(both.To, ended))))
}

// Continued is the union of a gap with one that begins within it.
func (g Gap) Continued(o Gap) Gap {
	if o.To <= g.To {
		return g
	}
	whole := Gap{
		From:        g.From,
		To:          o.To,
		Open:        o.Open,
		MaybeBefore: g.MaybeBefore,
		MaybeSooner: o.MaybeSooner,
	}
	return whole.proven(connect(g.proof(g.From, o.To), o.proof(g.From, o.To)))
}

// proven sets what is proven of the gap.
func (g Gap) proven(s span) Gap {
	from, to := max(s.from, g.From), min(s.to, g.To)
	if from >= to {
		from, to = g.To, g.To
	}
	g.UnprovenHead, g.UnprovenTail = from-g.From, g.To-to
	return g
}

// span is a period; it is empty unless from < to.
type span struct{ from, to int64 }

// proof is the proven part of the gap within [from, to).
func (g Gap) proof(from, to int64) span {
	return span{max(from, g.From+g.UnprovenHead), min(to, g.To-g.UnprovenTail)}
}

// connect returns the union of two spans if they overlap or are at most Bridge apart, otherwise the
// longer one.
func connect(a, b span) span {
	switch {
	case a.from >= a.to:
		return b
	case b.from >= b.to:
		return a
	case max(a.from, b.from)-Bridge <= min(a.to, b.to):
		return span{min(a.from, b.from), max(a.to, b.to)}
	case a.to-a.from >= b.to-b.from:
		return a
	}
	return b
}

// Part numbers the parts of a load that have a gap log of their own beside the load's.
type Part int

// The operations that only read, and the others; each only if the load has both.
const (
	Reads Part = iota
	Writes
	firstOp
)

// OpPart is the part of operation op.
func OpPart(op int) Part {
	return firstOp + Part(op)
}

// PartGap is a period without a success of one part of the load.
type PartGap struct {
	Part Part
	Gap
}

// Stall is a period in which a load generator did not run although it should have: it neither sent
// requests nor read replies.
type Stall struct{ From, To int64 }

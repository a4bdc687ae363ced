package plan

import "time"

// Turns are the parts of a run in which only one operation is sent: those of a benchmark whose
// tests run one after the other. Turn number k is that of operation k.
type Turns struct {
	Count int
	From  time.Duration // begin of the measured time; the first turn also covers what is before
	// length of each from then on; the last lasts until the end. 0 = each has an equal part of the
	// requests
	Each time.Duration
}

// Turns returns the turns of the load, nil if its operations are mixed.
func (p *Plan) Turns() *Turns {
	b := p.Workload.Benchmark
	if b == nil || b.Order != InTurn || len(b.Tests) < 2 {
		return nil
	}
	return &Turns{
		Count: len(b.Tests),
		From:  p.Shape.MeasuredFrom(),
		Each:  b.Each,
	}
}

// At returns the turn at a time since the start, or, if the turns are parts of the requests, that
// of request number, 0 <= number < of.
func (t *Turns) At(elapsed time.Duration, number, of int64) int {
	if t.Each == 0 {
		return int(max(0, min(number, of-1)) * int64(t.Count) / max(1, of))
	}
	return int(min(max(0, elapsed-t.From)/t.Each, time.Duration(t.Count-1)))
}

// Window returns when turn k lasts, for a load that ends at end. It is only for turns with a
// length.
func (t *Turns) Window(k int, end time.Duration) (from, to time.Duration) {
	from = t.From + time.Duration(k)*t.Each
	if to = from + t.Each; k == t.Count-1 {
		to = end
	}
	return min(from, end), min(to, end)
}

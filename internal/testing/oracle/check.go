package oracle

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// Finding is a figure whose bounds exclude the truth.
type Finding struct {
	Figure   string
	Truth    Range
	Reported Figure
	Doubted  bool // so that it is no falsehood
}

func (f Finding) String() string {
	doubted := ""
	if f.Doubted {
		doubted = ", doubted"
	}
	return fmt.Sprintf("%s: reported %v, true %v%s", f.Figure, f.Reported, f.Truth, doubted)
}

func (f Figure) String() string {
	if !f.Known {
		return "nothing"
	}
	return fmt.Sprintf("%.4g [%.4g, %.4g]", f.Value, f.AtLeast, f.AtMost)
}

func (r Range) String() string {
	switch {
	case r.None:
		return "nothing"
	case r.Unseen:
		return fmt.Sprintf("%.4g to %.4g, perhaps unseen", r.Lo, r.Hi)
	}
	return fmt.Sprintf("%.4g to %.4g", r.Lo, r.Hi)
}

// admits reports whether what is reported may be true.
func (r Range) admits(f Figure) bool {
	switch {
	case r.None:
		return !f.Known || f.AtLeast <= 0
	case !f.Known:
		return r.Unseen
	}
	const rounded = 1e-6
	return f.AtLeast <= r.Hi+rounded && f.AtMost >= r.Lo-rounded || math.IsInf(r.Lo, 1) && math.IsInf(f.AtMost, 1)
}

// Compare returns the figures whose bounds exclude the truth, and how many figures were compared: those that there are
// both.
func Compare(t Truth, f *Figures) (found []Finding, compared int) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		got, ok := f.Of[name]
		if !ok {
			continue
		}
		compared++
		if !t[name].admits(got) {
			found = append(found, Finding{name, t[name], got, f.Doubted(name)})
		}
	}
	return found, compared
}

// Verdict is what the figures of one history are worth.
type Verdict struct {
	Findings []Finding
	Figures  int  // compared
	Doubted  bool // the figures of the fault, or of the load
	Doubts   []string
}

// False returns the findings that nothing doubts.
func (v *Verdict) False() (list []Finding) {
	for _, f := range v.Findings {
		if !f.Doubted {
			list = append(list, f)
		}
	}
	return list
}

// Check plays a history and holds its figures against the truth: it must be called in a bubble of testing/synctest.
func Check(t *testing.T, h *History) *Verdict {
	t.Helper()
	played := Play(t, h)
	figures := Analyze(h, played)
	v := &Verdict{Doubted: len(figures.Fault)+len(figures.LoadTest) > 0}
	v.Findings, v.Figures = Compare(TruthOf(h, played.Lost), figures)
	for _, d := range slices.Concat(figures.Fault, figures.LoadTest) {
		v.Doubts = append(v.Doubts, d.Reason)
	}
	return v
}

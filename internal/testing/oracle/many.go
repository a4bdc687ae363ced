package oracle

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// Summary is what many histories have shown.
type Summary struct {
	Seed               uint64 `json:"seed"`
	Histories          int    `json:"histories"`
	Figures            int    `json:"figures"`            // compared with the truth
	Outside            int    `json:"outside"`            // figures whose bounds exclude the truth
	UndoubtedOutside   int    `json:"undoubtedOutside"`   // of these, those that nothing doubts: falsehoods
	Doubted            int    `json:"doubted"`            // histories
	Undisturbed        int    `json:"undisturbed"`        // histories in which the load generator was not disturbed
	DoubtedUndisturbed int    `json:"doubtedUndisturbed"` // of these, those that are doubted

	mu       sync.Mutex
	byFigure map[string][]int // the numbers of the histories in which a figure was false
}

// mostListed is how many numbers of histories are listed for a figure.
const mostListed = 20

// mostDoubted is the share of the histories without a disturbed load generator of which more may not be doubted.
const mostDoubted = 0.1

// Run draws and checks histories, as many at a time as there are processors.
func Run(t *testing.T, seed uint64, histories int) *Summary {
	t.Helper()
	s := &Summary{
		Seed:      seed,
		Histories: histories,
		byFigure:  map[string][]int{},
	}
	t.Run("histories", func(t *testing.T) {
		workers := runtime.GOMAXPROCS(0)
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for i := w; i < histories; i += workers {
					h := Draw(seed, uint64(i))
					s.add(i, h, check(t, h))
				}
			})
		}
	})
	return s
}

// check checks a history in virtual time.
func check(t *testing.T, h *History) (v *Verdict) {
	synctest.Test(t, func(t *testing.T) { v = Check(t, h) })
	return v
}

func (s *Summary) add(number int, h *History, v *Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Figures += v.Figures
	s.Outside += len(v.Findings)
	if v.Doubted {
		s.Doubted++
	}
	if !h.Disturbed() {
		s.Undisturbed++
		if v.Doubted {
			s.DoubtedUndisturbed++
		}
	}
	for _, f := range v.False() {
		s.UndoubtedOutside++
		s.byFigure[f.Figure] = append(s.byFigure[f.Figure], number)
	}
}

// Judge fails the test if anything was false, or too much doubted. Of each figure that was, it prints a history that is
// made as short as possible.
func (s *Summary) Judge(t *testing.T) {
	t.Helper()
	for _, figure := range slices.Sorted(maps.Keys(s.byFigure)) {
		numbers := slices.Sorted(slices.Values(s.byFigure[figure]))
		h := Minimize(Draw(s.Seed, uint64(numbers[0])), func(h *History) bool {
			return falsehood(check(t, h), figure) != nil
		})
		said := "not when it is made shorter"
		if f := falsehood(check(t, h), figure); f != nil {
			said = f.String()
		}
		t.Errorf(
			"%s is false, and not doubted, in %d of %d histories, numbers %v of seed %d. The first, made shorter:\n%s\n%s",
			figure, len(numbers), s.Histories,
			numbers[:min(len(numbers), mostListed)], s.Seed, said, h)
	}
	if float64(s.DoubtedUndisturbed) > mostDoubted*float64(s.Undisturbed) {
		t.Errorf("%d of the %d histories without a disturbed load generator are doubted, at most %.0f %% may be",
			s.DoubtedUndisturbed, s.Undisturbed, 100*mostDoubted)
	}
}

// falsehood returns what is false about a figure, and not doubted; nil if nothing is.
func falsehood(v *Verdict, figure string) *Finding {
	for _, f := range v.False() {
		if f.Figure == figure {
			return &f
		}
	}
	return nil
}

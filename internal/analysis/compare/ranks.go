package compare

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/combin"
)

// span is what is known of a value: it lies between both. They are equal unless it was censored.
type span struct{ least, most float64 }

func exactly(v float64) span {
	return span{v, v}
}

// minus is what is known of the difference of two values.
func (s span) minus(o span) span {
	return span{s.least - o.most, s.most - o.least}
}

// rank is the value by which s is ranked: a censored one is above all others.
func (s span) rank() float64 {
	return s.most
}

// mannWhitney is the exact conditional test of Mann and Whitney, with ties (Klotz 1966). u is the
// number of pairs in which x is greater, ties counted half; p is two-sided.
func mannWhitney(x, y []float64) (u, p float64) {
	ranks, tied := midranks(x, y)
	w := 0
	for _, r := range ranks[:len(x)] {
		w += r
	}
	n := len(x)
	u = float64(w-n*(n+1)) / 2
	var below, above float64 // P(W <= w), P(W >= w)
	if !tied {
		below, above = tails(distributionOfU(n, len(y)), int(u))
	} else {
		below, above = tails(sums(ranks, n), w)
	}
	return u, min(1, 2*min(below, above))
}

// midranks are twice the ranks of all values of x, then of y; equal values have the mean of their
// ranks.
func midranks(x, y []float64) (doubled []int, tied bool) {
	all := slices.Concat(x, y)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case all[a] < all[b]:
			return -1
		case all[a] > all[b]:
			return 1
		}
		return 0
	})
	doubled = make([]int, len(all))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && all[order[j]] == all[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			doubled[at] = i + 1 + j
		}
		tied = tied || j-i > 1
		i = j
	}
	return doubled, tied
}

// sums is the distribution of the sum of n of the given numbers, drawn without replacement: the
// probability of each sum from 0 on. It only adds, so that nothing cancels out.
func sums(of []int, n int) []float64 {
	total := 0
	for _, v := range of {
		total += v
	}
	// ways[k][s] is the number of subsets of k numbers with the sum s, of those numbers that were
	// looked at.
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	reached := 0
	for i, v := range of {
		reached += v
		for k := min(i+1, n); k > 0; k-- {
			from, to := ways[k-1], ways[k]
			for s := reached; s >= v; s-- {
				to[s] += from[s-v]
			}
		}
	}
	all := combin.GeneralizedBinomial(float64(len(of)), float64(n))
	for s := range ways[n] {
		ways[n][s] /= all
	}
	return ways[n]
}

// tails are the probabilities of at most and of at least v.
func tails(distribution []float64, v int) (below, above float64) {
	for s, p := range distribution {
		if s <= v {
			below += p
		}
		if s >= v {
			above += p
		}
	}
	return below, above
}

type sizes struct{ n, m int }

// distributionsOfU are kept: the same few sizes are needed again and again. All that can occur, of
// up to 50 and 100 repeats, hold 50 MB.
var distributionsOfU sync.Map // of []float64 by sizes

// distributionOfU is the distribution of U between n and m values without ties.
func distributionOfU(n, m int) []float64 {
	if known, ok := distributionsOfU.Load(sizes{n, m}); ok {
		return known.([]float64)
	}
	// The number of pairs in which x is greater is a sum over x: count(i, j)[u] = count(i-1, j)[u-j] +
	// count(i, j-1)[u].
	rows := make([][]float64, m+1) // by j, of the present i
	for j := range rows {
		rows[j] = []float64{1}
	}
	for i := 1; i <= n; i++ {
		next := make([][]float64, m+1)
		next[0] = []float64{1}
		for j := 1; j <= m; j++ {
			counts := make([]float64, i*j+1)
			copy(counts, next[j-1])
			for u, c := range rows[j] {
				counts[u+j] += c
			}
			next[j] = counts
		}
		rows = next
	}
	all := combin.GeneralizedBinomial(float64(n+m), float64(n))
	for u := range rows[m] {
		rows[m][u] /= all
	}
	distributionsOfU.Store(sizes{n, m}, rows[m])
	return rows[m]
}

// criticalOrder is the k for which the k-th smallest and the k-th greatest of all pairwise
// differences are the limits of the interval of level 1 - alpha (Bauer 1972). 0: there is none; the
// interval is infinite.
func criticalOrder(n, m int, alpha float64) int {
	k, below := 0, 0.0
	for _, p := range distributionOfU(n, m) {
		if below += p; 2*below > alpha {
			break
		}
		k++
	}
	return k
}

// smallestP is the smallest p that the test can give.
func smallestP(n, m int) float64 {
	return 2 / combin.GeneralizedBinomial(float64(n+m), float64(n))
}

// differences are all pairwise differences between x and y: their lower ends and their upper ends,
// each sorted.
func differences(x, y []span) (least, most []float64) {
	for _, a := range x {
		for _, b := range y {
			d := a.minus(b)
			least, most = append(least, d.least), append(most, d.most)
		}
	}
	slices.Sort(least)
	slices.Sort(most)
	return least, most
}

// shift is the estimate of Hodges and Lehmann (1963), the median of all pairwise differences.
// Censored values can leave only one side of it known.
func shift(x, y []span) span {
	least, most := differences(x, y)
	return span{median(least), median(most)}
}

// shiftInterval is the interval of level 1 - alpha for the shift between x and y.
func shiftInterval(x, y []span, alpha float64) Interval {
	k := criticalOrder(len(x), len(y), alpha)
	if k == 0 {
		return Interval{math.Inf(-1), math.Inf(1)}
	}
	least, most := differences(x, y)
	return Interval{least[k-1], most[len(most)-k]}
}

// median is that of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	a, b := sorted[(n-1)/2], sorted[n/2]
	if a == b { // also where both are infinite
		return a
	}
	return (a + b) / 2
}

// MedianOf is the median of values in any order; NaN = there is none.
func MedianOf(values []float64) float64 {
	return median(slices.Sorted(slices.Values(values)))
}

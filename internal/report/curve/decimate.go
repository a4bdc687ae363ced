package curve

import "math"

// points is how many points a curve has at most: about one for each pixel of a wide screen.
const points = 1200

// bucket is the values of several steps [first, end): the lowest, the highest, and the mean of
// those that there are. All are NaN if there is none.
type bucket struct {
	first, end     int
	low, high, avg float64
}

// decimate divides the values of [first, end) into at most so many buckets. Each keeps its lowest
// and its highest value: a sample of the points, such as LTTB takes, may leave out the one bad
// interval.
func decimate(values []float64, first, end, most int) []bucket {
	var buckets []bucket
	n := end - first
	m := min(n, most)
	for k := range m {
		b := bucket{
			first: first + k*n/m,
			end:   first + (k+1)*n/m,
			low:   math.NaN(),
			high:  math.NaN(),
			avg:   math.NaN(),
		}
		sum, count := 0.0, 0
		for _, x := range values[b.first:b.end] {
			if math.IsNaN(x) {
				continue
			}
			if count == 0 {
				b.low, b.high = x, x
			}
			b.low, b.high = min(b.low, x), max(b.high, x)
			sum += x
			count++
		}
		if count > 0 {
			b.avg = sum / float64(count)
		}
		buckets = append(buckets, b)
	}
	return buckets
}

// worst divides the steps [first, end) into at most so many buckets, and returns of each the step
// with the most errors, and where it ends.
func (c *Columns) worst(first, end, most int) (at [][3]int) {
	n := end - first
	m := min(n, most)
	for k := range m {
		from, to := first+k*n/m, first+(k+1)*n/m
		worst, errors := from, -1.0
		for i := from; i < to; i++ {
			if e := c.failed(i); e > errors {
				worst, errors = i, e
			}
		}
		at = append(at, [3]int{from, to, worst})
	}
	return at
}

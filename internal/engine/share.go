package engine

// share is part's share, 0 <= part < parts, when total things are dealt out one by one: floor(total/parts), and one more for the first
// total mod parts. For equal weights that is the split by largest remainder.
func share[T int | int64 | uint64](total, parts, part T) T {
	if part >= total {
		return 0
	}
	return (total-part-1)/parts + 1
}

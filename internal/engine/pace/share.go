package pace

// Share returns the share of one part, 0 <= part < parts, when total items are distributed
// round-robin: floor(total/parts), plus one for the first total mod parts.
func Share[T int | int64 | uint64](total, parts, part T) T {
	if part >= total {
		return 0
	}
	return (total-part-1)/parts + 1
}

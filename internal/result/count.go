package result

// Count is a number with its lower and upper bound.
type Count struct{ AtLeast, AtMost uint64 }

// Exact returns the number if it is known exactly.
func (c Count) Exact() (uint64, bool) { return c.AtMost, c.AtLeast == c.AtMost }

package result

import "time"

// Bounded is a duration with its lower and upper bound.
type Bounded struct{ Value, AtLeast, AtMost time.Duration }

// Exactly returns a duration that is known exactly.
func Exactly(d time.Duration) Bounded { return Bounded{d, d, d} }

// Count is a number with its lower and upper bound.
type Count struct{ AtLeast, AtMost uint64 }

// Exact returns the number if it is known exactly.
func (c Count) Exact() (uint64, bool) { return c.AtMost, c.AtLeast == c.AtMost }

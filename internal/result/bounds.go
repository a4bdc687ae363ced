package result

import "time"

// Bounded is a duration with its lower and upper bound.
type Bounded struct{ Value, AtLeast, AtMost time.Duration }

// Exactly returns a duration that is known exactly.
func Exactly(d time.Duration) Bounded { return Bounded{d, d, d} }

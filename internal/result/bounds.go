package result

import "time"

// Bounded is a length of time and the bounds within which it surely lies.
type Bounded struct{ Value, AtLeast, AtMost time.Duration }

// Exactly is a length of time that is known exactly.
func Exactly(d time.Duration) Bounded { return Bounded{d, d, d} }

// Package durations is durations of which bounds are known, and the division of a recovery into
// phases.
package durations

import "time"

// Bounded is a duration with the shortest and the longest that it can have been, given what the
// measurement itself did.
type Bounded struct{ Value, AtLeast, AtMost time.Duration }

// Exactly returns a duration that is known exactly.
func Exactly(d time.Duration) Bounded {
	return Bounded{d, d, d}
}

// None is a duration that was not measured.
var None = Exactly(-1)

// Known reports whether the duration was measured.
func (b Bounded) Known() bool {
	return b.Value >= 0
}

// Max is the longer of two durations, in value and in each bound.
func (b Bounded) Max(o Bounded) Bounded {
	return Bounded{max(b.Value, o.Value), max(b.AtLeast, o.AtLeast), max(b.AtMost, o.AtMost)}
}

// Min is the shorter of two durations that were measured, in value and in each bound.
func (b Bounded) Min(o Bounded) Bounded {
	return Bounded{min(b.Value, o.Value), min(b.AtLeast, o.AtLeast), min(b.AtMost, o.AtMost)}
}

// OrUnseen is the duration where a shorter one can have gone unseen.
func (b Bounded) OrUnseen(d time.Duration) Bounded {
	b.AtMost = max(b.AtMost, d)
	return b
}

// Within returns the value with bounds that contain it and are not negative.
func Within(value, atLeast, atMost time.Duration) Bounded {
	return Bounded{value, max(0, min(atLeast, value)), max(atMost, value)}
}

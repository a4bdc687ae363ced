// Package lifecycle decides what to do next with an object: (spec, observed, now) -> one Decision. It is pure and does nothing itself,
// so that a whole life can be stepped through in a test without a cluster and without sleeping.
package lifecycle

import (
	"strings"
	"time"
)

// Decision is the one thing to do now.
type Decision[A ~string] struct {
	Action  A
	Reason  string    // where the object stands meanwhile: the reason of its condition Complete
	Message string    // the same for people
	Until   time.Time // look again then at the latest; zero = only when something changes
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func join(names []string) string { return strings.Join(names, ", ") }

// Package lifecycle decides the next action on an object: (spec, observed, now) -> one Decision. It is pure, so that tests can step through the
// whole lifecycle of an object without a cluster and without sleeping.
package lifecycle

import (
	"strings"
	"time"
)

// Decision is the next action.
type Decision[A ~string] struct {
	Action  A
	Reason  string    // the reason of the condition Complete meanwhile
	Message string    // its message
	Until   time.Time // decide again then at the latest; zero = only when something changes
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

// Package lifecycle decides the next action on an object: (spec, observed, now) -> one Decision. It
// is pure, so that tests can step through the whole lifecycle of an object without a cluster and
// without sleeping.
package lifecycle

import (
	"fmt"
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

// lookAgain is how soon to look again for something that nobody announces, and that has been
// missing since an instant: ever more seldom.
func lookAgain(since, now time.Time) time.Duration {
	return min(max(time.Second, now.Sub(since)/10), 10*time.Second)
}

// waitedInVain adds to the message of what can pass that it did not.
func waitedInVain(message string, patience time.Duration) string {
	return fmt.Sprintf("%s; waited %s for that to pass", message, patience)
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

func join(names []string) string {
	return strings.Join(names, ", ")
}

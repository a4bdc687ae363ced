package plan

import "time"

// RateLimiter is a fixed-window limiter as applications build it: INCR of the limited user's
// counter, and PEXPIRE of it when that was the first request of its window. The limited users are
// the keys of the keyspace, drawn by its distribution.
//
// The two commands are not atomic, which is the pattern's known weakness: where the second one is
// lost, as in a failover, that user's window never ends. Its counter has no TTL and the user is
// denied permanently. The tally denied shows it.
type RateLimiter struct {
	Limit  int64         `json:"limit"`  // requests per window and user that are allowed; at least 1
	Window time.Duration `json:"window"` // at least 1ms
}

// The tallies of a rate limiter.
const (
	TallyAllowed = iota
	TallyDenied
)

func (l *RateLimiter) check(*Keyspace) string {
	if l.Limit < 1 || l.Window <= 0 {
		return "limit and window: must be above 0"
	}
	return ""
}

func (l *RateLimiter) operations() []Operation {
	return []Operation{{Name: "check", Weight: 1}}
}

func (l *RateLimiter) tallies() []string {
	return []string{"allowed", "denied"}
}

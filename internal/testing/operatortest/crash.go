package operatortest

import (
	"sync/atomic"
)

// CrashAt ends a process at the n-th write, counted over all processes: before the write reaches
// the API server, or just after it.
func CrashAt(n int32, after bool, writes *atomic.Int32, self func() *Operator) Spy {
	return CrashAtOf(n, after, writes, counts, self)
}

// CrashAtOf counts other writes.
func CrashAtOf(
	n int32, after bool, writes *atomic.Int32, counts func(Write) bool, self func() *Operator,
) Spy {
	die := func() {
		if writes.Add(1) == n {
			self().Crash()
		}
	}
	if after {
		return Spy{After: func(w Write) {
			if counts(w) {
				die()
			}
		}}
	}
	return Spy{Before: func(w Write) error {
		if counts(w) {
			die()
			if self().Dead() {
				return ErrDead
			}
		}
		return nil
	}}
}

// counts excludes the checkpoints, whose times are not deterministic.
func counts(w Write) bool {
	return w.Verb != "update"
}

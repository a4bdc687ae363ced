package adapter

import "golang.org/x/sys/unix"

// Monotonic is the system's CLOCK_MONOTONIC in nanoseconds, which adapters read, too.
func Monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the clock is a constant that Linux has
	}
	return t.Nano()
}

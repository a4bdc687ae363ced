//go:build !linux

package adapter

import "time"

var started = time.Now()

// Monotonic is a monotonic clock of this process in nanoseconds: only drivers in the same process
// read it, too. Adapters that are programs of their own need Linux.
func Monotonic() int64 {
	return int64(time.Since(started)) + 1
}

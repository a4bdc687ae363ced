//go:build unix

package engine

import (
	"math"
	"os"
	"syscall"
)

// openFiles returns how many files the process may have open, and how many it has; 0 = unknown.
func openFiles() (limit, open int) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil ||
		files.Cur > math.MaxInt32 {
		return 0, 0
	}
	own, _ := os.ReadDir("/dev/fd")
	return int(files.Cur), len(own)
}

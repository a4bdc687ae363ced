package goclients

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// used is the CPU time of this process in nanoseconds, and its resident memory in bytes.
func used() (cpu, memory int64) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		cpu = u.Utime.Nano() + u.Stime.Nano()
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			memory = pages * int64(os.Getpagesize())
		}
	}
	return cpu, memory
}

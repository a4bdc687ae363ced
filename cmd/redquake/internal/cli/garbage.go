package cli

import (
	"os"
	"runtime/debug"
)

// Percentages of GOGC: how much larger than its live part the heap may grow before it is collected.
const (
	atStart = 400
	usual   = 100
)

// CollectLater lets the heap grow while a program reads its kinds' schemas and compiles their rules:
// to collect again and again what that leaves took a third of the CPU of a start. A user's GOGC
// stays.
func CollectLater() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(atStart)
	}
}

// CollectAsUsual ends that.
func CollectAsUsual() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(usual)
	}
}

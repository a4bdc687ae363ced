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

// CollectLater lets the heap grow while a program starts: it reads its kinds' schemas and compiles
// their rules, and to collect that again and again took a third of the CPU of the start. A user's
// GOGC stays.
func CollectLater() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(atStart)
	}
}

// CollectAsUsual ends that for a program that runs for longer.
func CollectAsUsual() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(usual)
	}
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// machine is how the machine's processors have spent their time since it booted, in ticks.
type machine struct{ all, idle, stolen float64 }

// readMachine returns zeros where there is no /proc/stat.
func readMachine() (m machine) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.ParseFloat(field, 64)
		switch {
		case err != nil || i > 8: // guest time is part of user time
			continue
		case i == 4 || i == 5: // idle, iowait
			m.idle += ticks
		case i == 8:
			m.stolen += ticks
		}
		m.all += ticks
	}
	return m
}

func (m machine) since(before machine) machine {
	return machine{m.all - before.all, m.idle - before.idle, m.stolen - before.stolen}
}

// String gives the utilization of the processors and their steal time, without which durations
// cannot be compared.
func (m machine) String() string {
	if m.all == 0 {
		return ""
	}
	return fmt.Sprintf(", CPU %.0f%% idle, %.0f%% stolen by others on the host", 100*m.idle/m.all,
		100*m.stolen/m.all)
}

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// Interrupts are the signals that end a command in order. SIGHUP comes from a terminal that is
// closed, unless the command was started by nohup.
func Interrupts() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// OutliveReaders makes a write to a stream that nobody reads any more an error, as of any other
// file. Otherwise it ends the process, and what was measured is lost.
func OutliveReaders() {
	signal.Ignore(syscall.SIGPIPE)
}

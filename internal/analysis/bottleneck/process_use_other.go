//go:build !linux

package bottleneck

import (
	"runtime/debug"

	"github.com/redquake/redquake/internal/record"
)

// Self reads the resource usage of this process: on this system only what the Go runtime reports.
type Self struct{ gc debug.GCStats }

// NewSelf returns a Self.
func NewSelf() *Self {
	return &Self{}
}

// Read takes a reading.
func (s *Self) Read() record.AgentUse {
	debug.ReadGCStats(&s.gc)
	return record.AgentUse{GCPauseSeconds: s.gc.PauseTotal.Seconds(), WaitedSeconds: -1}
}

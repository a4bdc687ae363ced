//go:build !linux

package bottleneck

import (
	"runtime/debug"

	"github.com/redquake/redquake/internal/record"
)

// Self reads this process's own use: on this system only what Go tells.
type Self struct{ gc debug.GCStats }

// NewSelf returns a Self.
func NewSelf() *Self { return &Self{} }

// Read takes a reading.
func (s *Self) Read() record.AgentUse {
	debug.ReadGCStats(&s.gc)
	return record.AgentUse{GCPauseSeconds: s.gc.PauseTotal.Seconds()}
}

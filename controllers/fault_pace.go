package controllers

import (
	"time"

	"github.com/redquake/redquake/internal/lifecycle"
)

// betweenTries is the least time between two calls of an injection, or of an undoing, that is not complete: each ends in a write of the status,
// which would bring the object back here at once.
const betweenTries = 250 * time.Millisecond

// pause is how long to wait before an injection or an undoing is called again; 0 = not at all.
func (r *RedisFaultReconciler) pause(s *faultScope, d lifecycle.Decision[lifecycle.FaultAction]) time.Duration {
	last, ok := r.tries.Load(s.fault.UID)
	if !ok || d.Action != lifecycle.FaultInject && d.Action != lifecycle.FaultRevert {
		return 0
	}
	return max(0, betweenTries-r.Clock.Since(last.(time.Time)))
}

func (r *RedisFaultReconciler) tried(s *faultScope, d lifecycle.Decision[lifecycle.FaultAction], o outcome) {
	if (d.Action == lifecycle.FaultInject || d.Action == lifecycle.FaultRevert) && !o.again {
		r.tries.Store(s.fault.UID, r.Clock.Now())
		return
	}
	r.tries.Delete(s.fault.UID)
}

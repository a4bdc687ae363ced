package fault

import (
	"time"

	"github.com/redquake/redquake/internal/lifecycle"
)

// lastCalled returns when this process last called an injection that was not complete; the zero time if there is none.
func (r *Reconciler) lastCalled(s *scope) time.Time {
	if last, ok := r.calls.Load(s.fault.UID); ok {
		return last.(time.Time)
	}
	return time.Time{}
}

// recordCall stores the time of a call of an injection that is not complete.
func (r *Reconciler) recordCall(s *scope, d lifecycle.Decision[lifecycle.FaultAction], o outcome) {
	switch d.Action {
	case lifecycle.FaultInject, lifecycle.FaultRenew:
		if !o.again {
			r.calls.Store(s.fault.UID, r.Clock.Now())
			return
		}
	}
	r.calls.Delete(s.fault.UID)
}

package fault

import (
	"time"

	"github.com/redquake/redquake/internal/lifecycle"
)

// lastCalled is when this process last called an injection or a revert of a fault that was not complete; zero where it is none.
func (r *Reconciler) lastCalled(s *scope) time.Time {
	if last, ok := r.calls.Load(s.fault.UID); ok {
		return last.(time.Time)
	}
	return time.Time{}
}

// recordCall keeps when an injection or a revert was called that is not complete.
func (r *Reconciler) recordCall(s *scope, d lifecycle.Decision[lifecycle.FaultAction], o outcome) {
	switch d.Action {
	case lifecycle.FaultInject, lifecycle.FaultRevert, lifecycle.FaultRenew:
		if !o.again {
			r.calls.Store(s.fault.UID, r.Clock.Now())
			return
		}
	}
	r.calls.Delete(s.fault.UID)
}

package conditions

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/timeline"
)

// Display returns the main figures as text.
func Display(s *scope.Fault) *v1alpha1.FaultDisplay {
	status := &s.Fault.Status
	d := &v1alpha1.FaultDisplay{}
	if s.Traits.External {
		d.Target = timeline.HitPods(status)
	} else if n := len(status.Targets); n > 0 {
		d.Target = status.Targets[0].Pod
		if n > 1 {
			d.Target += fmt.Sprintf(" and %d more", n-1)
		}
	}
	if s.Measured != nil && status.Impact != nil && status.InjectedAt != nil {
		digest.Columns(d, s.Measured)
		if d.Recovery == "" && status.SettledTime != nil {
			d.Recovery = v1alpha1.ReasonNotRecovered
			if figures.RecoveryUnknown(status) {
				d.Recovery = "Unknown"
			}
		}
	} else if old := status.Display; old != nil {
		d.Dip = old.Dip
		d.Outage = old.Outage
		d.Recovery = old.Recovery
		d.WhileActive = old.WhileActive
	}
	if status.Impact != nil {
		d.LostWrites = digest.LostWritesOf(status.Impact).String()
	}
	if *d == (v1alpha1.FaultDisplay{}) {
		return nil
	}
	return d
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

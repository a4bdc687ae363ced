package redisfault

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/timeline"
)

// display returns the main figures as text.
func (s *scope) display() *v1alpha1.FaultDisplay {
	status := &s.fault.Status
	d := &v1alpha1.FaultDisplay{}
	if s.traits.External {
		d.Target = timeline.HitPods(status)
	} else if n := len(status.Targets); n > 0 {
		d.Target = status.Targets[0].Pod
		if n > 1 {
			d.Target += fmt.Sprintf(" and %d more", n-1)
		}
	}
	if s.measured != nil && status.Impact != nil && status.InjectedAt != nil {
		digest.Columns(d, s.measured)
		if d.Recovery == "" && status.SettledTime != nil {
			d.Recovery = v1alpha1.ReasonNotRecovered
			if recoveryUnknown(status) {
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

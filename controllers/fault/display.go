package fault

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/format"
)

// display returns the main figures as text.
func (s *scope) display() *v1alpha1.FaultDisplay {
	status := &s.fault.Status
	d := &v1alpha1.FaultDisplay{}
	if n := len(status.Targets); n > 0 {
		d.Target = status.Targets[0].Pod
		if n > 1 {
			d.Target += fmt.Sprintf(" and %d more", n-1)
		}
	}
	if s.measured != nil && status.Impact != nil && status.InjectedAt != nil {
		d.Dip, d.Outage = format.Share(s.measured.Dip), format.Duration(s.measured.WorstOutage().Value)
		if took, recovered := s.measured.Recovery(); recovered {
			d.Recovery = format.Duration(took.Value)
		} else if status.SettledTime != nil {
			d.Recovery = v1alpha1.ReasonNotRecovered
		}
	} else if old := status.Display; old != nil {
		d.Dip, d.Outage, d.Recovery = old.Dip, old.Outage, old.Recovery
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

package fault

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
)

// display returns the main figures as text.
func (s *scope) display() *v1alpha1.FaultDisplay {
	status := &s.fault.Status
	d := &v1alpha1.FaultDisplay{}
	if s.traits.External {
		d.Target = hitPods(status)
	} else if n := len(status.Targets); n > 0 {
		d.Target = status.Targets[0].Pod
		if n > 1 {
			d.Target += fmt.Sprintf(" and %d more", n-1)
		}
	}
	if s.measured != nil && status.Impact != nil && status.InjectedAt != nil {
		dip, _ := s.measured.WorstDip()
		d.Dip, d.Outage = format.Share(dip), format.Duration(s.measured.WorstOutage().Value)
		d.WhileActive = changesOf(s.measured.WhileActive)
		if took, recovered := s.measured.Recovery(); recovered {
			d.Recovery = format.Duration(took.Value)
		} else if recoveryUnknown(status) && status.SettledTime != nil {
			d.Recovery = "Unknown"
		} else if status.SettledTime != nil {
			d.Recovery = v1alpha1.ReasonNotRecovered
		}
	} else if old := status.Display; old != nil {
		d.Dip, d.Outage, d.Recovery, d.WhileActive = old.Dip, old.Outage, old.Recovery, old.WhileActive
	}
	if status.Impact != nil {
		d.LostWrites = state.LostWritesOf(status.Impact).String()
	}
	if *d == (v1alpha1.FaultDisplay{}) {
		return nil
	}
	return d
}

// changesOf describes the changes while a lasting fault was there; "" for other faults.
func changesOf(w *impact.WhileActive) string {
	if w == nil {
		return ""
	}
	var parts []string
	for _, one := range []struct {
		name   string
		change float64
	}{{"throughput", w.Change}, {"p99", w.LatencyP99Change}} {
		text := format.Share(one.change)
		if text == "" { // the baseline has none
			continue
		}
		if one.change > 0 {
			text = "+" + text
		}
		parts = append(parts, one.name+" "+text)
	}
	return strings.Join(parts, ", ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

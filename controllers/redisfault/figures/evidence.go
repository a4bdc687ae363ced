package figures

import (
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/timeline"
)

// ConfirmExternal judges whether anything shows that something broke Redis.
func ConfirmExternal(s *scope.Fault) {
	status := &s.Fault.Status
	var evidence []string
	for _, e := range timeline.Broken(status) {
		evidence = append(evidence, strings.TrimSpace(e.Event+" "+e.Object))
	}
	if status.MarkedBy == v1alpha1.MarkedByLoad ||
		s.Measured != nil && s.Measured.TimeToImpact != nil {
		evidence = append(evidence, "the load has errors or a gap")
	}
	status.Effect = v1alpha1.EffectNotObserved
	status.EffectEvidence = "neither the load nor pods nor servers show anything"
	if len(evidence) > 0 {
		status.Effect = v1alpha1.EffectConfirmed
		status.EffectEvidence = digest.Truncate(strings.Join(evidence, ", "), 1024)
	}
}

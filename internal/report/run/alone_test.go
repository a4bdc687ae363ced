package run

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
)

// A fault that waits for its load, and one whose load was deleted, have a report, too.
func TestFaultAlone(t *testing.T) {
	waiting := v1alpha1.RedisFault{}
	waiting.Name, waiting.Namespace = "kill", "shop"
	waiting.Spec.Action.Type = v1alpha1.FaultPodKill
	d, err := Fault(subject.Input{Faults: []v1alpha1.RedisFault{waiting}}, "kill")
	if err != nil || d.State != report.Pending || d.Name != "kill" || d.Namespace != "shop" ||
		!strings.HasPrefix(d.Done.String(), "PodKill") {
		t.Errorf("%+v, %v", d, err)
	}
	ended := saved(t, "pass").Faults
	d, err = Fault(subject.Input{Faults: ended}, "kill-primary")
	if err != nil || d.Verdict != report.Pass || d.Series != nil || len(d.Figures) == 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

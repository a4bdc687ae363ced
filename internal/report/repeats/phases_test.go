package repeats

import (
	"testing"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// A phase has the owner that it has in the report of its run: one that ended with an event of the fault is the fault's.
func TestOwnerOf(t *testing.T) {
	for phase, want := range map[result.Phase]report.Owner{
		{Name: "Active"}:                         report.ByFault,
		{Name: "Reverted"}:                       report.ByFault,
		{Name: "Ready", Source: "Kubernetes"}:    report.Kubernetes,
		{Name: "Promoted", Source: "Redis"}:      report.Redis,
		{Name: "FirstSuccess", Source: "Client"}: report.Client,
		{Name: "Unexplained"}:                    report.Nobody,
	} {
		if got := ownerOf(&phase); got != want {
			t.Errorf("%s: %s, want %s", phase.Name, got, want)
		}
	}
}

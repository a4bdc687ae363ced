package loadflags

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/result"
)

// The verdict's own doubt of a stalled generator is about this process, and its advice about what can be changed here.
func TestDoubtOfAStalledProcess(t *testing.T) {
	run := &result.Load{Outcome: result.Finished, Bottleneck: &result.Bottleneck{Stalled: true}}
	run.Total = result.Operation{
		Requests:   10,
		OK:         10,
		Throughput: 10,
		Stalled:    &result.Stalled{Length: 1e9, Count: 2, Longest: 6e8, Throughput: 100},
	}
	verdict.Load((*v1alpha1.Objectives)(nil), run)
	Advise(run)
	if len(run.Doubts) != 1 ||
		!strings.HasPrefix(run.Doubts[0].Message, "this process did not run for 1s of the measured time") ||
		!strings.HasSuffix(run.Doubts[0].Message, ". Use a machine that is less busy") {
		t.Errorf("the doubts are %+v", run.Doubts)
	}
}

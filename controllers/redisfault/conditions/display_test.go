package conditions

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// The columns show the worst of what the status has: the dip of the writes, which the reads hide, and the outage of a
// shard.
func TestDisplayShowsTheWorst(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(1, 0))
	s := &scope.Fault{Fault: &v1alpha1.RedisFault{}, Figures: scope.Figures{Measured: result.NewFault(&impact.Impact{
		BaselineRate: 100, Dip: impact.Dip{Value: 1, Of: impact.Writes}, Dips: impact.Dips{All: 0.1, Writes: 1},
		Outage: impact.Outage{Bounded: durations.Exactly(5 * time.Second), Of: impact.Shard},
	}, result.FaultInput{})}}
	s.Fault.Status.InjectedAt, s.Fault.Status.Impact = &at, &v1alpha1.Impact{}
	d := Display(s)
	if d == nil || d.Dip != "100%" || d.Outage != "5s" {
		t.Errorf("%+v", d)
	}
	s.Fault.Status.Display = d
	if text := impactMessage(s); !strings.HasPrefix(text, "throughput fell by 100%, no success for 5s, ") {
		t.Errorf("the sentence %q", text)
	}
}

// Without a throughput before the fault nothing can fall, which is not the same as nothing that fell.
func TestNoBaselineIsNoDip(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(1, 0))
	s := &scope.Fault{Fault: &v1alpha1.RedisFault{}, Figures: scope.Figures{Measured: &result.Fault{}}}
	s.Fault.Status.InjectedAt, s.Fault.Status.Impact = &at, &v1alpha1.Impact{}
	if s.Fault.Status.Display = Display(s); s.Fault.Status.Display == nil {
		s.Fault.Status.Display = &v1alpha1.FaultDisplay{}
	}
	if text := impactMessage(s); s.Fault.Status.Display.Dip != "" ||
		!strings.HasPrefix(text, "no throughput before the fault, no success for ") {
		t.Errorf("the sentence %q", text)
	}
}

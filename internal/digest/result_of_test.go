package digest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result"
)

// A result that was kept when the fault had settled, and could not be completed, has the verdict of the object: an
// inconclusive one must not count.
func TestResultOf(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "kill", UID: "1"}}
	f.Status = v1alpha1.RedisFaultStatus{
		Verdict:    v1alpha1.VerdictInconclusive,
		InjectedAt: new(metav1.NewMicroTime(start.Add(time.Minute))),
	}
	baseline := 100.0
	kept := []result.Fault{{Name: "kill", UID: "1", Baseline: &baseline}, {Name: "kill", UID: "2", Verdict: "Pass"}}
	for name, c := range map[string]struct {
		kept    []result.Fault
		verdict string
		figures bool
	}{
		"not kept":      {nil, "Inconclusive", false},
		"of another":    {kept[1:], "Inconclusive", false},
		"not completed": {kept, "Inconclusive", true},
		"completed":     {[]result.Fault{{Name: "kill", UID: "1", Baseline: &baseline, Verdict: "Fail"}}, "Fail", true},
	} {
		if got := ResultOf(c.kept, f, start); got.Verdict != c.verdict || (got.Baseline != nil) != c.figures {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if kept[0].Verdict != "" {
		t.Error("what was kept has changed")
	}
}

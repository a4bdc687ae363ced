package study

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report/overlay"
	"github.com/redquake/redquake/internal/result"
)

// The phases of a run are those of the result that was kept of its fault; those of the object where none was.
func TestDetailOfTheKeptResult(t *testing.T) {
	t.Parallel()
	injected := time.Date(2026, 11, 1, 0, 0, 30, 0, time.UTC)
	took := v1alpha1.DurationOf(2 * time.Second)
	fault := v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "kill", UID: "1"}, Status: v1alpha1.RedisFaultStatus{
		InjectedAt: new(metav1.NewMicroTime(injected)),
		Impact: &v1alpha1.Impact{
			TimeToImpact: &v1alpha1.BoundedDuration{
				Value:   v1alpha1.DurationOf(1 * time.Millisecond),
				AtLeast: v1alpha1.DurationOf(1 * time.Millisecond),
				AtMost:  v1alpha1.DurationOf(1 * time.Millisecond),
			},
			Phases: []v1alpha1.Phase{
				{
					Name:     "Ready",
					Source:   v1alpha1.PhaseKubernetes,
					Duration: &v1alpha1.BoundedDuration{Value: took, AtLeast: took, AtMost: took},
				},
			},
		},
	}}
	kept := result.Fault{
		Name: "kill", UID: "1", TimeToImpact: &result.BoundedSeconds{Value: result.Seconds(7 * time.Millisecond)},
		Phases: []result.Phase{
			{Name: "DatasetLoaded", Source: "Redis", Took: result.BoundedSeconds{Value: result.Seconds(3 * time.Second)}},
		},
	}
	another := kept
	another.UID = "2"
	for name, c := range map[string]struct {
		kept   []result.Fault
		phase  string
		took   time.Duration
		begins time.Duration
	}{
		"kept":                   {[]result.Fault{kept}, "DatasetLoaded", 3 * time.Second, 7 * time.Millisecond},
		"of the object":          {nil, "Ready", 2 * time.Second, time.Millisecond},
		"kept of an earlier one": {[]result.Fault{another}, "Ready", 2 * time.Second, time.Millisecond},
	} {
		d := DetailOf(overlay.Window{}, &v1alpha1.RedisLoadTest{}, []v1alpha1.RedisFault{fault}, c.kept, nil)
		if len(d.Phases) != 1 || d.Phases[0].Name != c.phase || time.Duration(d.Phases[0].Took.Value) != c.took ||
			d.Begins == nil || *d.Begins != c.begins {
			t.Errorf("%s: phases %+v, begins %v: want %s of %v, %v", name, d.Phases, d.Begins, c.phase, c.took, c.begins)
		}
	}
}

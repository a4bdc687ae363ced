package scope

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
)

// The API server stamps the creation, by a clock that may be behind the operator's: what an object waits for has its
// time nevertheless.
func TestGraceIsByTheOperatorsClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	f.Spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: "cache"}
	if seen := SeenOf(f, false, now).FirstSeen; !seen.Equal(now) {
		t.Errorf("a fault without a status was first seen at %s, %s ago", seen, now.Sub(seen))
	}
	state.SetSummary(&f.Status.Conditions, 1, state.Summary{Reason: v1alpha1.ReasonLoadTestNotFound})
	if seen := SeenOf(f, false, now.Add(20*time.Second)).FirstSeen; seen.Sub(now).Abs() > 10*time.Second {
		t.Errorf("a fault that had its first status at %s was first seen at %s", now, seen)
	}
}

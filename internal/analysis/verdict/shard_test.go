package verdict

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// The aggregate hides a shard that is down, the objective does not.
func TestMaxOutageCountsTheWorstShard(t *testing.T) {
	sum := impact.Summary{}
	sum.Requests = 10
	f := Figures{Summary: sum, Faults: []Fault{{Name: "kill", Confirmed: true, Impact: impact.Impact{Outage: time.Second, ShardOutage: 50 * time.Second, Recovered: true}}}}
	for limit, want := range map[time.Duration]v1alpha1.Verdict{5 * time.Second: v1alpha1.VerdictFail, time.Minute: v1alpha1.VerdictPass} {
		if j := Judge(&v1alpha1.Objectives{MaxOutage: &metav1.Duration{Duration: limit}}, f); j.Verdict != want {
			t.Errorf("limit %s: %s, %s", limit, j.Verdict, j.Message)
		}
	}
}

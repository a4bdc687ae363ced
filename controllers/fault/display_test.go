package fault

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// The columns show the worst of what the status has: the dip of the writes, which the reads hide, and the outage of a shard.
func TestDisplayShowsTheWorst(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(1, 0))
	s := &scope{fault: &v1alpha1.RedisFault{}, measured: &result.Fault{Impact: impact.Impact{
		Dip: 0.1, DipOf: impact.Writes, Writes: &impact.Effect{Dip: 1}, ShardOutage: impact.Exactly(5 * time.Second), ServerOutage: impact.Exactly(-1),
	}}}
	s.fault.Status.InjectedAt, s.fault.Status.Impact = &at, &v1alpha1.Impact{}
	if d := s.display(); d == nil || d.Dip != "100%" || d.Outage != "5s" {
		t.Errorf("%+v", d)
	}
}

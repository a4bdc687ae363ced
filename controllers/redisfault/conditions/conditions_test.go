package conditions

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
)

func TestImpactMessage(t *testing.T) {
	f := &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{RecoveryDeadline: metav1.Duration{Duration: time.Minute}}}
	s := &scope.Fault{Fault: f}
	contains := func(want string) {
		t.Helper()
		if got := impactMessage(s); !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
	contains("no figures yet")
	f.Status.Impact, f.Status.Display = &v1alpha1.Impact{LostWrites: new(int64(3))},
		&v1alpha1.FaultDisplay{Dip: "50%", Outage: "1s"}
	contains(
		"throughput fell by 50%, no success for 1s, 0 errors, 0 requests lost, 3 acknowledged writes lost, not recovered yet")
	f.Status.SettledTime = new(metav1.NowMicro())
	contains("not recovered within 1m")
	f.Status.Impact.Recovered, f.Status.Display.Recovery = true, "2s"
	contains("recovered after 2s")
	f.Status.Display.WhileActive = "throughput -12.5%, p99 +340%"
	contains("3 acknowledged writes lost, while active throughput -12.5%, p99 +340%, recovered after 2s")
}

//go:build integration

package failover

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Real sentinels, whose user has only the documented rights. All pods have the same address here, so that each appears
// to have the first sentinel beside it: killing two of three pods would take two of three sentinels.
func TestGuardWithRealSentinels(t *testing.T) {
	t.Parallel()
	set := redistest.NewSentinel(t, 2, redistest.SentinelOptions{SentinelUsers: []string{"rq on >secret -@all +sentinel"}})
	s := newFailoverStage(t, set.Servers(), set.SentinelAddresses()...)
	s.atSentinel.Username, s.atSentinel.Password = "rq", "secret"
	for hit, wantText := range map[int32]string{1: "", 2: "2 of 3 sentinels and leave 1"} {
		spec := &v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill},
			Select: v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectCount, Count: &hit},
			Allow:  []v1alpha1.Allowance{v1alpha1.AllowDataLoss},
		} // these servers write nothing to a disk
		_, err := guard.Choose(t.Context(), faulttest.On(s.deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
			spec, contract.Traits{EndsServer: true, Silences: true, WholePod: true})
		if wantText == "" {
			if err != nil {
				t.Errorf("one of three: %v", err)
			}
			continue
		}
		if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonBlastRadius ||
			!strings.Contains(p.Message, wantText) {
			t.Errorf("%d of three: %+v", hit, p)
		}
	}
}

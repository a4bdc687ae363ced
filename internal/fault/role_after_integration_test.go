//go:build integration

package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// An old primary that returns as a primary after a failover is not the primary again: the sentinels name another one,
// and it will become a replica of that.
func TestRolesAfterBySentinels(t *testing.T) { redistest.Each(t, testRolesAfterBySentinels) }

func testRolesAfterBySentinels(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, nil, guard.Choose)
	set := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	returned := redistest.Start(t)
	s.Host("old", returned, nil)
	hit := []v1alpha1.FaultTarget{
		{Pod: "old", Role: v1alpha1.RolePrimary, InjectedAt: &metav1.MicroTime{Time: time.Now()}},
	}
	deps := s.Deps()
	deps.Sentinels = sentinel.Set{
		Addresses: set.SentinelAddresses(),
		Login:     redis.Login{Timeout: faulttest.Patient},
		Servers:   deps.Servers,
	}
	of := func() target.Redis {
		return faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis
	}
	if after := RolesAfter(t.Context(), of(), hit); len(after.Seen) > 0 ||
		after.Open != "old reports to be the primary, the sentinels name another server" {
		t.Errorf("the promoted one does not answer: %+v", after)
	}
	for i, server := range set.Servers() {
		s.Host(fmt.Sprintf("redis-%d", i), server, nil)
	}
	after := RolesAfter(t.Context(), of(), hit)
	if len(after.Seen) != 1 || after.Seen[0].Event != EventFailedOver ||
		!strings.HasPrefix(after.Open, "old still reports to be the primary, the sentinels name redis-") {
		t.Errorf("both report to be the primary: %+v", after)
	}
	returned.Do("REPLICAOF", "127.0.0.1", fmt.Sprint(set.CurrentPrimary().Port))
	await.Until(t, "the old primary is a replica", func() error {
		after := RolesAfter(t.Context(), of(), hit)
		if after.Open != "" || len(after.Seen) != 1 || after.Seen[0].Event != EventFailedOver ||
			!strings.Contains(after.Seen[0].Message, "old its replica") {
			return fmt.Errorf("%+v", after)
		}
		return nil
	})
}

//go:build integration

package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/target/sentinel"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Two servers have role primary: the sentinels decide which one is selected, whatever the order of the names.
func TestSelectPrimaryBySentinels(t *testing.T) { redistest.Each(t, testSelectPrimaryBySentinels) }

func testSelectPrimaryBySentinels(t *testing.T) {
	t.Parallel()
	s := faulttest.NewStage(t, nil, Choose)
	set := redistest.SharedSentinel(t)
	impostor := redistest.Shared(t)
	s.Host("redis-0", impostor, nil)
	for i, server := range set.Servers() {
		s.Host(fmt.Sprintf("redis-%d", i+1), server, nil)
	}
	deps := s.Deps()
	primaries := v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Mode: v1alpha1.SelectAll}
	_, err := Choose(t.Context(), faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: primaries}, contract.Traits{})
	if p := faulttest.ProblemOf(t, err); p.Lasting || !strings.Contains(p.Message, "redis-0 and redis-") {
		t.Errorf("without sentinels: %+v", p)
	}
	deps.Sentinels = sentinel.Set{
		Addresses: set.SentinelAddresses(),
		Login:     redis.Login{Timeout: faulttest.Patient},
		Servers:   deps.Servers,
	}
	found, err := Choose(t.Context(), faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: primaries}, contract.Traits{})
	if err != nil || len(found) != 1 || found[0].Address != set.CurrentPrimary().Address() {
		t.Errorf("%+v, %v; want the one at %s", found, err, set.CurrentPrimary().Address())
	}
}

// No server has role primary, as after each was told to follow another: the refusal says which sentinels name which
// server.
func TestSelectPrimaryThatIsAReplica(t *testing.T) {
	redistest.Each(t, func(t *testing.T) {
		s := faulttest.NewStage(t, nil, Choose)
		set := redistest.NewSentinel(t, 1, redistest.SentinelOptions{DownAfter: time.Hour})
		set.Primary.Do("replicaof", "127.0.0.1", fmt.Sprint(set.Replicas[0].Port))
		for i, server := range set.Servers() {
			s.Host(fmt.Sprintf("redis-%d", i), server, nil)
		}
		deps := s.Deps()
		deps.Sentinels = sentinel.Set{
			Addresses: set.SentinelAddresses()[:1],
			Login:     redis.Login{Timeout: faulttest.Patient},
			Servers:   deps.Servers,
		}
		_, err := Choose(t.Context(), faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
			&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary, Mode: v1alpha1.SelectAll}},
			contract.Traits{})
		p := faulttest.ProblemOf(t, err)
		watchers := strings.Join(slices.Sorted(slices.Values(set.SentinelAddresses())), ", ")
		want := "redis-0 is Replica; redis-1 is Replica. As the primary of " + redistest.MasterName + ", " + watchers +
			" name " + set.Primary.Address()
		if p.Lasting || !strings.Contains(p.Message, want) {
			t.Errorf("%+v\nwant: %s", p, want)
		}
	})
}

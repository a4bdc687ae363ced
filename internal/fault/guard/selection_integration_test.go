//go:build integration

package guard

import (
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// The roles are those that Redis reports at the time of the selection.
func TestSelectRealRoles(t *testing.T) {
	t.Parallel()
	set := redistest.SharedReplication(t, 1)
	s := faulttest.NewStage(t, nil, Choose)
	s.Host("redis-0", set.Replicas[0], nil)
	s.Host("redis-1", set.Primary, nil)
	for role, want := range map[v1alpha1.RedisRole]string{
		v1alpha1.RolePrimary: "redis-1",
		v1alpha1.RoleReplica: "redis-0",
	} {
		found, err := Choose(t.Context(), faulttest.On(s.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
			&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: role, Mode: v1alpha1.SelectAll}}, contract.Traits{})
		if err != nil || len(found) != 1 || found[0].Pod != want {
			t.Errorf("%s: %+v, %v; want %s", role, found, err, want)
		}
	}
}

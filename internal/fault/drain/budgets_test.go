package drain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestAdvice(t *testing.T) {
	app, shard := map[string]string{"app": "redis"}, map[string]string{"shard": "0"}
	both := []v1alpha1.FaultTarget{{Pod: "redis-0", Copies: []string{"redis-1"}}, {Pod: "redis-1", Copies: []string{"redis-0"}}}
	const all = "redis-0, redis-1 are all copies of their data, and no PodDisruptionBudget "
	for name, tc := range map[string]struct {
		budgets []client.Object
		targets []v1alpha1.FaultTarget
		says    string // "" = nothing
	}{
		"no budget":               {nil, both, all + "selects any of them"},
		"a budget of other pods":  {[]client.Object{budgetOver("db", map[string]string{"app": "db"}, 0)}, both, all + "selects any of them"},
		"a budget that keeps one": {[]client.Object{budgetOver("redis", app, 1)}, both, ""},
		"a budget of everything": {
			[]client.Object{budgetOver("redis", app, 2)},
			both,
			all + "keeps one: redis (maxUnavailable 1) selects 2 of them and lets 2 go",
		},
		// a budget for primaries and one for replicas: each lets one go, and together that is everything
		"a budget for each role": {
			[]client.Object{
				budgetOver("primary", map[string]string{"role": "primary"}, 1),
				budgetOver("replica", map[string]string{"role": "replica"}, 1),
			},
			both,
			all + "keeps one: primary (maxUnavailable 1) selects 1 of them and lets 1 go; " +
				"replica (maxUnavailable 1) selects 1 of them and lets 1 go",
		},
		"a budget of a shard": {[]client.Object{budgetOver("shard", shard, 1)}, both, ""},
		"one of two copies":   {nil, both[:1], ""},
		"a budget that lets none go": {
			[]client.Object{budgetOver("redis", app, 0)},
			both[:1],
			"PodDisruptionBudget redis (maxUnavailable 1) allows no eviction now: that of pod redis-0 would be tried for 5m0s",
		},
		"an only copy": {
			nil,
			[]v1alpha1.FaultTarget{{Pod: "redis-0"}},
			"redis-0 is the only copy of its data, and no PodDisruptionBudget selects any of them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t, tc.budgets...)
			for i, role := range []topology.Role{topology.Primary, topology.Replica} {
				w.Pod([]string{"redis-0", "redis-1"}[i], "u", "10.0.0.1", role, func(p *corev1.Pod) {
					p.Labels["shard"], p.Labels["role"] = "0", []string{"primary", "replica"}[i]
				})
			}
			injector, err := Kinds.For(draining(nil), w.Of("lose"))
			faulttest.Must(t, err)
			said := injector.(contract.Adviser).Advise(t.Context(), tc.targets)
			if got := strings.Join(said, "\n"); got != tc.says {
				t.Errorf("it says\n%s\nwant\n%s", got, tc.says)
			}
		})
	}
}

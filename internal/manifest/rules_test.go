package manifest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Rules that are compiled node by node refuse what the validator of the API server refuses, which compiles all rules of
// a kind at once.
func TestRulesAreThoseOfTheAPIServer(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		object     Object
		atLeast    int // broken rules
	}{
		{"values, objects and list items of a load test", `
metadata: {name: a.b}
spec:
  target: {service: {name: a}, addresses: ["a:1"], topology: Sentinel, database: 1, sentinel: {}}
  client: {driver: GoRedis, image: a, retries: 1, dialTimeout: 1ms, requestTimeout: 2h, addedLatency: 11s, options: {a: 1}}
  load: {thinkTime: 2h, stages: [{duration: 1ms}, {duration: 2s, users: 1, rate: 1}], search: {from: 5, to: 2,
    trial: 1ms, settle: 1h, precision: "0%"}}
  workload: {values: {minBytes: 5}, ranking: {members: 1, findCount: 2, weights: {}}, rateLimiter: {limit: 1, window: 0s}}
  pods: {count: 3, lost: Continue, startDeadline: 1s}
  observe: {interval: 70ms, redisInfo: 1ms}
  verify: {staleReads: true, acknowledgedWrites: false, share: "0%"}
  objectives: {minThroughput: "0", maxLatencyP99: 0s, maxLostWrites: 1}
`, &v1alpha1.RedisLoadTest{}, 25},
		{"a fault", `
metadata: {name: a.b}
spec: {action: {type: PodKill, hang: {}}, recoveryDeadline: 1ms, duration: 0s, trigger: {steadyFor: 1ms}, select: {mode: All}}
`, &v1alpha1.RedisFault{}, 3},
		{"nothing", "{}", &v1alpha1.RedisLoadTest{}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kind, _, err := kindOf(tt.object)
			if err != nil {
				t.Fatal(err)
			}
			content := map[string]any{}
			if err := yaml.Unmarshal([]byte(tt.text), &content); err != nil {
				t.Fatal(err)
			}
			for range 2 { // before and after the defaults are set
				whole := cel.NewValidator(kind.structural, true, celconfig.PerCallLimit)
				want, left := whole.Validate(context.Background(), nil, kind.structural, content, nil,
					celconfig.RuntimeCELCostBudget)
				got, budget := kind.rules.validate(nil, content, celconfig.RuntimeCELCostBudget)
				if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" || budget != left {
					t.Errorf("%d of the budget are left, want %d; errors (-want +got):\n%s", budget, left, diff)
				}
				if len(got) < tt.atLeast {
					t.Errorf("only %d rules are broken:\n%v", len(got), got)
				}
				kind.setDefaults(content)
			}
		})
	}
}

func sorted(errs field.ErrorList) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return texts
}

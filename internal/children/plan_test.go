package children

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/plan"
)

var addresses = []string{"redis.shop.svc:6379"}

func TestPlan(t *testing.T) {
	tests := map[string]string{
		"smallest": smallest,
		"fullest":  fullest,
		"rate": `
target: {addresses: ["10.0.0.1:6379"]}
load: {rate: 5000, users: 64, duration: 1m}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}], values: {bytes: 100}}
probe: {rate: 0}
observe: {redisInfo: 0s}
`,
		"verify": `
target: {addresses: ["10.0.0.1:6379"]}
load: {users: 10, duration: 1m}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}]}
verify: {acknowledgedWrites: true, share: "2.5%", dualPrimary: true}
objectives: {maxLostWrites: 0}
`,
		"search": `
target: {addresses: ["10.0.0.1:6379"]}
client: {requestTimeout: 5s}
load: {search: {from: 500, to: 20000, trial: 30s}, warmUp: 5s, duration: 20m}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}]}
objectives: {maxLatencyP99: 5ms, maxErrorRate: "0.1%"}
`,
		"stages": `
target: {addresses: ["10.0.0.1:6379"]}
load: {stages: [{duration: 30s, users: 100}, {duration: 1m, users: 100}, {duration: 30s, users: 0}]}
workload: {commands: [{name: incr, command: [INCR, "{key}"]}]}
`,
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			test := loadTest(t, spec)
			before := test.DeepCopy()
			made, err := Plan(test, addresses)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, test); diff != "" {
				t.Errorf("Plan changed the object:\n%s", diff)
			}
			configMap, err := PlanConfigMap(test, made)
			if err != nil {
				t.Fatal(err)
			}
			isGolden(t, "plan_"+name+".yaml", configMap)

			var back plan.Plan
			if err := json.Unmarshal([]byte(configMap.Data[PlanKey]), &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(made, &back); diff != "" {
				t.Errorf("the pod reads another plan:\n%s", diff)
			}
		})
	}
}

// TestSeedsOfPlans: each object has another seed and keeps it, unless the spec sets one.
func TestSeedsOfPlans(t *testing.T) {
	seed := func(uid types.UID, set *int64) uint64 {
		test := loadTest(t, smallest)
		test.UID, test.Spec.Workload.Seed = uid, set
		made, err := Plan(test, addresses)
		if err != nil {
			t.Fatal(err)
		}
		return made.Workload.Seed
	}
	one := seed("6f1c2a9e", nil)
	if one == 0 || one > MaxSeed || one != seed("6f1c2a9e", nil) || one == seed("6f1c2a9f", nil) {
		t.Errorf("the seed of an object is %d, that of another %d", one, seed("6f1c2a9f", nil))
	}
	if got := seed("6f1c2a9e", new(int64(41))); got != 41 {
		t.Errorf("the seed is %d, want that of the spec, 41", got)
	}
}

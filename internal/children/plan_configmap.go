package children

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// PlanConfigMap holds the plan under PlanKey, for the load pods. It is immutable: pods of one run
// never see two plans.
func PlanConfigMap(test *v1alpha1.RedisLoadTest, plan *plan.Plan) (*corev1.ConfigMap, error) {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the plan: %w", err)
	}
	return &corev1.ConfigMap{
		TypeMeta:   configMapType,
		ObjectMeta: ofLoadTest(test, planName(test.Name, string(text)), ComponentLoad),
		Immutable:  new(true),
		Data:       map[string]string{PlanKey: string(text) + "\n"},
	}, nil
}

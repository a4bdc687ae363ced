package policy_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/policy"
)

// The example in config is a policy with every kind of entry.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../config/policy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var stored corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &stored); err != nil || stored.Name != policy.ConfigMap || len(stored.Data) != 1 {
		t.Fatalf("%v: %+v", err, stored)
	}
	p, err := policy.Parse(stored.Data[policy.Key], fault.Types())
	if err != nil || len(p.Rules) != 3 || len(p.Limits("shop", nil)) != 3 {
		t.Errorf("%v: %+v", err, p)
	}
}

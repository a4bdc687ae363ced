//go:build e2e

package e2e_test

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// passes checks that a finished test met all its objectives and has the verdict Pass.
func (n *namespace) passes(test *v1alpha1.RedisLoadTest) {
	n.Helper()
	status := &test.Status
	if len(status.Objectives) == 0 {
		n.Error("no objective was judged")
	}
	for _, o := range status.Objectives {
		if o.Met == nil || !*o.Met {
			n.Errorf("objective %s %s: %s, not met", o.Name, o.Limit, o.Actual)
		}
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet)
	if status.Verdict != v1alpha1.VerdictPass || c == nil || c.Status != metav1.ConditionTrue {
		n.Errorf("verdict %s with ObjectivesMet %+v, want Pass", status.Verdict, c)
	}
}

//go:build e2e

package e2e_test

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/impact"
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
	unsteady := 0
	for _, i := range status.Impacts {
		if i.Impact != nil {
			unsteady += len(i.Impact.Doubts) - len(otherDoubts(i.Impact))
		}
	}
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet)
	if unsteady > 0 && status.Verdict == v1alpha1.VerdictInconclusive && c != nil && strings.Count(c.Message, "; ")+1 == unsteady {
		return // nothing else is in doubt
	}
	if status.Verdict != v1alpha1.VerdictPass || c == nil || c.Status != metav1.ConditionTrue {
		n.Errorf("verdict %s with ObjectivesMet %+v, want Pass", status.Verdict, c)
	}
}

// otherDoubts leaves out that the throughput was not steady before a fault: where the machine stood still just then, that is so.
func otherDoubts(i *v1alpha1.Impact) []v1alpha1.Doubt {
	return slices.DeleteFunc(slices.Clone(i.Doubts), func(d v1alpha1.Doubt) bool { return d.Reason == impact.BaselineUnsteady })
}

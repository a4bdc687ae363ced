//go:build e2e

package e2e_test

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// passes checks that a finished test met all its objectives and has the verdict Pass; Inconclusive, if all that is in
// doubt is that the test was aborted on purpose, or what a machine does that has other work, too.
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
	if c != nil && status.Verdict == v1alpha1.VerdictInconclusive && onlyExpectedDoubts(test) {
		n.Logf("Inconclusive: %+v", status.Doubts)
		return
	}
	if status.Verdict != v1alpha1.VerdictPass || c == nil || c.Status != metav1.ConditionTrue {
		n.Errorf("verdict %s with ObjectivesMet %+v, want Pass", status.Verdict, c)
	}
}

// machineDoubts are the reasons for doubt that a stall of the machine causes.
var machineDoubts = []string{
	"StartSkew", "ClockUncertainty", "ClockStepped", "LoadGeneratorSaturated",
	impact.GeneratorStalled, impact.GeneratorStarved,
}

func onlyExpectedDoubts(test *v1alpha1.RedisLoadTest) bool {
	expected := slices.Clone(machineDoubts)
	if test.Spec.Abort {
		expected = append(expected, v1alpha1.ReasonAborted)
	}
	return len(test.Status.Doubts) > 0 &&
		!slices.ContainsFunc(test.Status.Doubts, func(d v1alpha1.Doubt) bool { return !slices.Contains(expected, d.Reason) })
}

// otherDoubts leaves out what a stall of the machine causes: the throughput was not steady before a fault, or a load
// pod did not run around the outage.
func otherDoubts(i *v1alpha1.Impact) []v1alpha1.Doubt {
	return slices.DeleteFunc(slices.Clone(i.Doubts), func(d v1alpha1.Doubt) bool {
		return d.Reason == impact.BaselineUnsteady || d.Reason == impact.GeneratorStalled
	})
}

//go:build e2e

package e2e_test

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// passes checks that a finished test met all its objectives and has the verdict Pass; Inconclusive, if all that is in doubt is that the test was
// aborted on purpose, or what a machine does that has other work, too.
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
	if c != nil && status.Verdict == v1alpha1.VerdictInconclusive && onlyExpectedDoubts(test, c.Message) {
		n.Logf("Inconclusive: %s", c.Message)
		return
	}
	if status.Verdict != v1alpha1.VerdictPass || c == nil || c.Status != metav1.ConditionTrue {
		n.Errorf("verdict %s with ObjectivesMet %+v, want Pass", status.Verdict, c)
	}
}

// machineDoubts are the beginnings of doubts that a stall of the machine causes.
var machineDoubts = []string{"the load pods started ", "the clocks of the load pods are known to ", "the operator's clock moved by ", "the load generator was the bottleneck: ", "load pod "}

func onlyExpectedDoubts(test *v1alpha1.RedisLoadTest, message string) bool {
	expected := slices.Clone(machineDoubts)
	if test.Spec.Abort {
		expected = append(expected, "the load was aborted")
	}
	for doubt := range strings.SplitSeq(message, "; ") {
		if !slices.ContainsFunc(expected, func(start string) bool { return strings.HasPrefix(doubt, start) }) {
			return false
		}
	}
	return true
}

// otherDoubts leaves out what a stall of the machine causes: the throughput was not steady before a fault, or a load pod did not run around the outage.
func otherDoubts(i *v1alpha1.Impact) []v1alpha1.Doubt {
	return slices.DeleteFunc(slices.Clone(i.Doubts), func(d v1alpha1.Doubt) bool {
		return d.Reason == impact.BaselineUnsteady || d.Reason == impact.GeneratorStalled
	})
}

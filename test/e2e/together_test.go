//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestAppliedTogether applies Redis, load test and fault in one file, as GitOps does: both wait for the Redis, and have
// a result. Only make e2e-together repeats it, REDQUAKE_E2E_TOGETHER times.
func TestAppliedTogether(t *testing.T) {
	t.Parallel()
	times, err := strconv.Atoi(os.Getenv("REDQUAKE_E2E_TOGETHER"))
	if err != nil {
		times = 1
	}
	for i := range times {
		t.Run(fmt.Sprintf("%d of %d", i+1, times), func(t *testing.T) {
			t.Parallel()
			appliedTogether(t)
		})
	}
}

func appliedTogether(t *testing.T) {
	n := newNamespace(t, "together")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "kubectl", "-n", n.name, "apply", "-f",
		sampleFile(t)).CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v: %s", err, out)
	}
	const limit = 10 * time.Minute // minutes to start, one of load, three until the fault has settled
	over := []string{
		v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered, v1alpha1.ReasonObjectivesNotMet,
		v1alpha1.ReasonInconclusive,
	}
	fault := n.waitFault(steadyKill, limit, over...)
	test := n.waitLoadTest(steadyLoad, limit, v1alpha1.ReasonSucceeded)
	if fault.Status.Verdict == "" || fault.Status.Impact == nil || test.Status.Verdict == "" ||
		test.Status.Summary.Requests < 60*500 {
		t.Errorf("no result: fault %s %+v, load test %s %+v", fault.Status.Verdict, fault.Status.Impact, test.Status.Verdict,
			test.Status.Summary)
	}
	t.Logf("load test %s, fault %s, its load began %s after it was applied", test.Status.Verdict, fault.Status.Verdict,
		test.Status.StartTime.Sub(test.CreationTimestamp.Time).Round(time.Second))
}

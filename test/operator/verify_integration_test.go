//go:build integration

package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A run whose load pods read their ledgers back; the load is two pods', the server a Valkey.
func TestRunWithVerification(t *testing.T) {
	t.Parallel()
	redistest.With(t, redistest.Valkey9)
	p := operatortest.Scenario{Load: operatortest.Load(func(test *v1alpha1.RedisLoadTest) {
		operatortest.Verifies(test)
		operatortest.WithTolerance(test)
		test.Spec.Pods.Count = 2
	})}.OnAPIServer(t)
	test := p.TestEnds("run", 2*time.Minute)
	operatortest.CheckNothingLost(t, test, test.Status.Summary.Operations[2].Requests)
	if ops := test.Status.Summary.Operations; len(ops) != 3 || ops[2].Name != engine.LedgerOperation ||
		ops[2].Requests != test.Status.Verification.Acknowledged {
		t.Errorf("operations %+v", ops)
	}
	if target := test.Status.Target; target == nil || target.Server != "valkey" ||
		!strings.HasPrefix(target.Version, "9.") {
		t.Errorf("target %+v", target)
	}
}

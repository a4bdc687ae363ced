//go:build integration

package operator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// A load pod reports why it cannot log in, and the test fails with its message.
func TestLoadPodReportsLoginError(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{Load: operatortest.Load()}.OnAPIServer(t, "--requirepass", "s3cret")
	test := p.TestEnds("run", time.Minute)
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, p.Redis.Address()) ||
		!strings.Contains(c.Message, "NOAUTH") && !strings.Contains(c.Reason, "Auth") {
		t.Errorf("Failed is %+v, want the address and the refused authentication", c)
	}
}

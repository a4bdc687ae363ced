//go:build integration

package controllers

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// A load pod reports why it cannot log in, and the test fails with its message.
func TestLoadPodReportsLoginError(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p, "--requirepass", "s3cret")
	startKubelet(p, nil)
	startOperator(p, spy{})
	p.create(newLoadTest("run", redis.address(), nil))
	test := p.testEnds("run", time.Minute)
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionFailed)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, redis.address()) ||
		!strings.Contains(c.Message, "NOAUTH") && !strings.Contains(c.Reason, "Auth") {
		t.Errorf("Failed is %+v, want the address and the refused authentication", c)
	}
}

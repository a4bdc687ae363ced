package fault

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// contract is one injector before its target, with the record as the controller stored it.
type contractCase struct {
	*world
	pod      *corev1.Pod
	injector contract.Injector
	target   *v1alpha1.FaultTarget
}

func (c *contractCase) inject() {
	c.t.Helper()
	if err := called(c.injector.Inject(c.t.Context(), c.target)); err != nil {
		c.t.Errorf("inject: %v", err)
	}
}

func (c *contractCase) revert() {
	c.t.Helper()
	if err := called(c.injector.Revert(c.t.Context(), c.target)); err != nil {
		c.t.Errorf("revert: %v", err)
	}
}

func (c *contractCase) effect(want v1alpha1.Effect, says string) {
	c.t.Helper()
	if got, evidence := c.injector.Effect(c.t.Context(), c.target); got != want || !strings.Contains(evidence, says) {
		c.t.Errorf("effect %s (%s), want %s about %q", got, evidence, want, says)
	}
}

package faulttest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Case is one injector with its target, whose record is as the controller stored it.
type Case struct {
	*World
	Pod      *corev1.Pod
	Injector contract.Injector
	Target   *v1alpha1.FaultTarget
}

// Inject fails the test unless the injection is complete.
func (c *Case) Inject() {
	c.T.Helper()
	err := Called(c.Injector.Inject(c.T.Context(), c.Target))
	if err != nil {
		c.T.Errorf("inject: %v", err)
	}
}

// Revert fails the test unless the revert is complete.
func (c *Case) Revert() {
	c.T.Helper()
	err := Called(c.Injector.Revert(c.T.Context(), c.Target))
	if err != nil {
		c.T.Errorf("revert: %v", err)
	}
}

// Effect fails the test unless the effect is this one and its evidence contains a text.
func (c *Case) Effect(want v1alpha1.Effect, says string) {
	c.T.Helper()
	got, evidence := c.Injector.Effect(c.T.Context(), c.Target)
	if got != want || !strings.Contains(evidence, says) {
		c.T.Errorf("effect %s (%s), want %s about %q", got, evidence, want, says)
	}
}

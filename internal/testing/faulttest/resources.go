package faulttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// InProgress fails the test unless a call is not complete and its message contains a text.
func InProgress(t *testing.T, err error, about string) {
	t.Helper()
	var steps *Pending
	if !errors.As(err, &steps) || !strings.Contains(steps.Message, about) {
		t.Fatalf("%v, want something in progress about %q", err, about)
	}
}

// EffectIs fails the test unless the effect is this one and its evidence contains a text.
func EffectIs(
	t *testing.T, injector contract.Injector, target *v1alpha1.FaultTarget, want v1alpha1.Effect, about string,
) {
	t.Helper()
	got, evidence := injector.Effect(t.Context(), target)
	if got != want || !strings.Contains(evidence, about) {
		t.Errorf("effect %s (%s), want %s about %q", got, evidence, want, about)
	}
}

package contract

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Confirmed is the effect of a fault that is seen, with the evidence.
func Confirmed(evidence string, args ...any) (v1alpha1.Effect, string) {
	return v1alpha1.EffectConfirmed, fmt.Sprintf(evidence, args...)
}

// NotObserved is the effect of a fault that is not there, with the evidence.
func NotObserved(evidence string, args ...any) (v1alpha1.Effect, string) {
	return v1alpha1.EffectNotObserved, fmt.Sprintf(evidence, args...)
}

// Inconclusive is the effect of a fault of which nothing is known, with the reason.
func Inconclusive(why string, args ...any) (v1alpha1.Effect, string) {
	return v1alpha1.EffectInconclusive, fmt.Sprintf(why, args...)
}

// Unseen is the effect of a fault that could not be looked at.
func Unseen(err error) (v1alpha1.Effect, string) {
	return v1alpha1.EffectInconclusive, err.Error()
}

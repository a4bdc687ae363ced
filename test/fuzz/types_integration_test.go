//go:build integration

package fuzz

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/testing/stage"
)

// TestEveryFaultTypeIsDrawn compares the faults that the operator can inject with those of the fuzz test.
func TestEveryFaultTypeIsDrawn(t *testing.T) {
	for i := range declared.All {
		declaration := &declared.All[i]
		if declaration.Engine == v1alpha1.EngineNative && !drawsSettings(declaration.Type) {
			t.Errorf("no case of stage.Kinds draws spec.action of a %s: Wild", declaration.Name())
		}
	}
}

// drawsSettings reports whether member sets the field of spec.action that a type has. Optional settings are omitted in
// half of the draws.
func drawsSettings(faultType v1alpha1.FaultType) bool {
	d := stage.Draw{Rand: rand.New(rand.NewPCG(1, 2))}
	for range 100 {
		spec := &v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: faultType}}
		member(d, spec)
		settings := reflect.ValueOf(spec.Action).FieldByName(string(faultType))
		if !settings.IsValid() || !settings.IsZero() { // no settings, or set
			return true
		}
	}
	return false
}

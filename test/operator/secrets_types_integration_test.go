//go:build integration

package operator

import (
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/testing/stage"
)

// TestEveryFaultTypeMeetsPasswords compares the faults that the operator can inject with those of the planted
// passwords.
func TestEveryFaultTypeMeetsPasswords(t *testing.T) {
	for i := range declared.All {
		declaration := &declared.All[i]
		is := func(k stage.Kind) bool { return stage.OperationOf(k) == declaration }
		if !declaration.External &&
			!slices.ContainsFunc(secretScenes, func(s secretScene) bool { return slices.ContainsFunc(s.kinds, is) }) {
			t.Errorf("secretScenes has no scene with %s", declaration.Name())
		}
	}
}

//go:build integration

package crash

import (
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/testing/stage"
)

// TestEveryFaultTypeIsTested compares the faults that the operator can inject with those of the crash tests.
func TestEveryFaultTypeIsTested(t *testing.T) {
	for i := range declared.All {
		declaration := &declared.All[i]
		is := func(k stage.Kind) bool { return stage.OperationOf(k) == declaration }
		if !declaration.External && !slices.ContainsFunc(stage.Kinds, is) {
			t.Errorf("stage.Kinds has no case for %s", declaration.Name())
		}
	}
}

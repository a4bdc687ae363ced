//go:build integration

package controllers

import (
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/fault/declared"
)

// TestEveryFaultTypeIsTested compares the faults that the operator can inject with those of the crash tests.
func TestEveryFaultTypeIsTested(t *testing.T) {
	for i := range declared.All {
		declaration := &declared.All[i]
		is := func(k crashKind) bool { return operationOf(k) == declaration }
		if !declaration.External && !slices.ContainsFunc(crashKinds, is) {
			t.Errorf("crashKinds has no case for %s", declaration.Name())
		}
	}
}

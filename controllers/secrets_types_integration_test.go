//go:build integration

package controllers

import (
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/fault/declared"
)

// TestEveryFaultTypeMeetsPasswords compares the faults that the operator can inject with those of the planted passwords.
func TestEveryFaultTypeMeetsPasswords(t *testing.T) {
	for i := range declared.All {
		declaration := &declared.All[i]
		is := func(k crashKind) bool { return operationOf(k) == declaration }
		if !declaration.External &&
			!slices.ContainsFunc(secretScenes, func(s secretScene) bool { return slices.ContainsFunc(s.kinds, is) }) {
			t.Errorf("secretScenes has no scene with %s", declaration.Name())
		}
	}
}

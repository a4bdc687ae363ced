package redisfault

import (
	"context"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault"
)

// mostWarnings is how many the status has at most.
const mostWarnings = 32

// warnings are what else will act on the targets, and what will not.
func (s *scope) warnings(ctx context.Context, targets []v1alpha1.FaultTarget) []string {
	found := fault.Warnings(ctx, s.deps.Redis, s.traits, targets)
	if s.fault.Spec.StopIf != nil && !s.traits.Stays() {
		found = append(found[:min(len(found), mostWarnings-1)],
			"spec.stopIf is only evaluated before the injection: this fault is over right after it, and leaves nothing to revert")
	}
	return found
}

// fitting is warnings that fit the status: they quote what a server replied.
func fitting(warnings []string) []string {
	var kept []string
	for _, w := range warnings[:min(len(warnings), mostWarnings)] {
		kept = append(kept, digest.Truncate(w, 512))
	}
	return kept
}

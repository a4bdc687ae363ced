//go:build integration

package controllers

import (
	"os"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// A dry run of every kind leaves real servers and the cluster as they were, and has planned the fault. Without REDQUAKE_CRASH_OUT, the quick kinds run.
func TestDryRunOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range crashKinds {
		if !kind.quick && os.Getenv("REDQUAKE_CRASH_OUT") == "" {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			s := kind.raise(t)
			broken := 0
			if s.broken != nil {
				broken = s.broken()
			}
			s.create(newFault("plan", "run", kind.fault, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger.After = length(time.Hour) // it does not wait for that
				kind.spec(s.place, &f.Spec)
				f.Spec.DryRun = true
			}))
			f := s.faultEnds("plan", time.Minute)
			if reason(f.Status.Conditions) != v1alpha1.ReasonDryRun || f.Status.Plan == nil || len(f.Status.Plan.Steps) != len(f.Status.Targets) || len(f.Status.Targets) == 0 {
				t.Fatalf("%s; plan %+v", where(f.Status.Conditions), f.Status.Plan)
			}
			t.Logf("%+v", f.Status.Plan.Steps)
			if lines := differences(s.before, s.shows()); len(lines) > 0 {
				t.Errorf("after the dry run: %q", lines)
			}
			if s.broken != nil && s.broken() != broken {
				t.Errorf("%d injections, %d before", s.broken(), broken)
			}
			if left := s.orphansOf(f); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

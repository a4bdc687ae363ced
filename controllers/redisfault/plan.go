package redisfault

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/format"
)

// maxSteps is the number of targets that a plan describes.
const maxSteps = 64

// planOf is what the fault will do to targets that have passed the preflight.
func planOf(s *scope.Fault, targets []v1alpha1.FaultTarget) *v1alpha1.FaultPlan {
	p := &v1alpha1.FaultPlan{
		Trigger: triggerInWords(s),
		Omitted: int32(max(0, len(targets)-maxSteps)),
	}
	if s.Traits.Lasts > 0 {
		p.End = format.Duration(s.Traits.Lasts) + " after it is complete on all targets"
		if s.Seen.Setting {
			p.End = fmt.Sprintf("when RedisLoadTest %s has ended, at the latest %s", s.Seen.LoadName, p.End)
		}
		p.LatestEnd = new(metav1.NewMicroTime(s.Seen.Deadline))
	}
	for i := range targets[:min(len(targets), maxSteps)] {
		t := &targets[i]
		d := s.Injector.Describe(t)
		p.Steps = append(p.Steps, v1alpha1.PlanStep{
			Pod:                 t.Pod,
			Action:              digest.Truncate(d.Action, 1024),
			LosesData:           t.LosesData,
			Revert:              digest.Truncate(d.Revert, 1024),
			SelfEnding:          digest.Truncate(d.SelfEnding, 512),
			ManualRevertCommand: digest.Truncate(s.Injector.ManualRevertCommand(t), 2048),
		})
	}
	return p
}

func triggerInWords(s *scope.Fault) string {
	if s.Seen.Setting {
		return fmt.Sprintf("at once, whether RedisLoadTest %s exists yet or not", s.Seen.LoadName)
	}
	text := fmt.Sprintf(
		"after %s of steady throughput, or never if that is not within %s from the end of warm-up",
		format.Duration(s.Seen.SteadyFor), format.Duration(s.Seen.SteadyWithin))
	if s.Seen.After != nil {
		text = fmt.Sprintf("%s after the start of the load, but not before the end of warm-up",
			format.Duration(*s.Seen.After))
	}
	if s.Traits.External {
		text += fmt.Sprintf("; then when something else breaks Redis, within %s",
			format.Duration(s.Fault.Spec.MarkWait()))
	}
	return text
}

// mostWarnings is how many the status has at most.
const mostWarnings = 32

// warningsOf are what else will act on the targets, and what will not.
func warningsOf(ctx context.Context, s *scope.Fault, targets []v1alpha1.FaultTarget) []string {
	var found []string
	if adviser, is := s.Injector.(contract.Adviser); is {
		found = adviser.Advise(ctx, targets)
	}
	found = append(found, fault.Warnings(ctx, s.Deps.Redis, s.Traits, targets)...)
	if s.Fault.Spec.StopIf != nil && !s.Traits.Stays() {
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
